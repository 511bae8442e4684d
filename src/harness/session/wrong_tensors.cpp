#include "harness/session/wrong_tensors.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace longhaul::bench {
namespace {

std::string text_of(const Plan& plan, std::size_t rank) {
  const RankInfo& info = plan.ranks[rank];
  const std::string replica =
      plan.replicas > 1 ? fmt::format(", replica {}", info.replica) : std::string{};
  return fmt::format("rank {} ({}, stage {}{})", rank, plan.datacenters[index(info.datacenter)],
                     info.device, replica);
}

std::string difference_text(double by) {
  return std::isnan(by) ? "is not a number" : fmt::format("differs by {:.2g}", by);
}

/// The worst first; numbers that are none before all others.
std::string worst_of(std::vector<WrongTensor> tensors) {
  static constexpr std::size_t kNamed = 3;
  std::ranges::stable_sort(tensors, std::ranges::greater{},
                           [](const WrongTensor& each) { return each.by >= 0 ? each.by : 1e300; });
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, tensors.size()); ++i)
    text += fmt::format("{}{}: {} {}", i > 0 ? "; " : "", tensors[i].tensor, tensors[i].what,
                        difference_text(tensors[i].by));
  if (tensors.size() > kNamed) text += fmt::format("; and {} more", tensors.size() - kNamed);
  return fmt::format("{} ({:g} is allowed)", text, tensors.front().allowed);
}

}  // namespace

std::vector<std::string> lines_of(const Plan& plan, int iteration,
                                  const std::vector<WrongTensor>& wrong) {
  std::map<std::optional<std::size_t>, std::vector<WrongTensor>> of_rank;
  for (const WrongTensor& each : wrong) of_rank[each.rank].push_back(each);
  std::vector<std::string> lines;
  for (auto& [rank, tensors] : of_rank)
    lines.push_back(fmt::format("iteration {}, {}: {}", iteration,
                                rank ? text_of(plan, *rank) : "all ranks",
                                worst_of(std::move(tensors))));
  return lines;
}

}  // namespace longhaul::bench
