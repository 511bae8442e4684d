#include "planner/overlap/overlap_limits.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace longhaul::planner {
namespace {

using collective::Grouping;
using collective::Partition;
using collective::Substitution;
using collective::Tier;

OverlapIdea idea_of(Tier tier) {
  switch (tier) {
    case Tier::operation: return OverlapIdea::operation;
    case Tier::layer: return OverlapIdea::layer;
    case Tier::model: return OverlapIdea::model;
  }
  return OverlapIdea::operation;
}

/// Calls `take` with each word of a comma list.
template <typename Listed, typename Take>
void for_each_of(const char* option, std::string_view list, const Take& take) {
  for (std::size_t begin = 0; begin <= list.size() && !list.empty();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string word{list.substr(begin, end - begin)};
    begin = end + 1;
    const auto known = from_string<Listed>(word);
    if (!known)
      fail("{}: there is no \"{}\". {}", option, word, suggestion(word, every_name<Listed>()));
    take(*known);
  }
}

}  // namespace

bool OverlapLimits::allows(Tier tier) const { return allows(idea_of(tier)); }

bool OverlapLimits::allows(const Partition& partition) const {
  const bool substitutes = partition.substitution != Substitution::none;
  const bool groups = partition.grouping != Grouping::flat || !partition.mesh.sizes.empty();
  const bool cuts = partition.pieces > 1 || partition.group_parts > 0;
  return (allows(OverlapIdea::primitive) || !substitutes) &&
         (allows(OverlapIdea::group) || !groups) && (allows(OverlapIdea::workload) || !cuts);
}

SearchWatch ended_after(Duration limit, SearchWatch other) {
  const auto end = std::chrono::steady_clock::now() + limit;
  return [end, other = std::move(other)](std::size_t evaluated) {
    return (other && other(evaluated)) || std::chrono::steady_clock::now() >= end;
  };
}

SearchWatch ended_at(std::size_t evaluated) {
  return [evaluated](std::size_t so_far) { return so_far >= evaluated; };
}

OverlapLimits parse_overlap_limits(std::string_view allow, std::string_view rules) {
  OverlapLimits limits;
  limits.alone = !allow.empty() || !rules.empty();
  if (!allow.empty()) limits.allowed.fill(false);
  for_each_of<OverlapIdea>("--allow", allow, [&](OverlapIdea idea) {
    limits.allowed[static_cast<std::size_t>(idea)] = true;
  });
  for_each_of<Tier>("--rules", rules,
                    [&](Tier tier) { limits.by_rule[static_cast<std::size_t>(tier)] = true; });
  return limits;
}

}  // namespace longhaul::planner
