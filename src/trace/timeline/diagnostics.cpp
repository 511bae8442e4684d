#include "trace/timeline/diagnostics.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace longhaul::trace {

void Diagnostics::add(const std::string& sort, std::string text) {
  if (++counts_[sort] <= kKept) kept_.push_back({sort, std::move(text)});
}

void Diagnostics::append(const Diagnostics& other) {
  std::map<std::string, std::size_t> uncounted = other.counts_;
  for (const Kept& kept : other.kept_) {
    add(kept.sort, kept.text);
    --uncounted[kept.sort];
  }
  for (const auto& [sort, count] : uncounted) counts_[sort] += count;
}

std::vector<std::string> Diagnostics::texts() const {
  std::vector<std::string> all;
  for (const Kept& kept : kept_) all.push_back(kept.text);
  for (const auto& [sort, count] : counts_) {
    if (count > kKept) all.push_back(fmt::format("... and {} more: {}", count - kKept, sort));
  }
  return all;
}

bool UnorderedFindings::keeps(const std::string& sort, std::int64_t place) const {
  const auto at = kept_.find(sort);
  return at == kept_.end() || at->second.size() < Diagnostics::kKept ||
         place < at->second.back().place;
}

void UnorderedFindings::add(const std::string& sort, std::int64_t place, std::string text) {
  ++counts_[sort];
  if (!keeps(sort, place)) return;
  std::vector<Kept>& kept = kept_[sort];
  const auto at = std::ranges::upper_bound(kept, place, {}, &Kept::place);
  kept.insert(at, {place, std::move(text)});
  if (kept.size() > Diagnostics::kKept) kept.pop_back();
}

Diagnostics UnorderedFindings::ordered() const {
  std::vector<std::pair<std::int64_t, Diagnostics::Kept>> all;
  for (const auto& [sort, kept] : kept_)
    for (const Kept& one : kept) all.push_back({one.place, {sort, one.text}});
  std::ranges::stable_sort(all, {}, [](const auto& one) { return one.first; });
  Diagnostics findings;
  for (auto& [place, kept] : all) findings.kept_.push_back(std::move(kept));
  findings.counts_ = counts_;
  return findings;
}

}  // namespace longhaul::trace
