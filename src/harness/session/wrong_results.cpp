#include "harness/session/wrong_results.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <type_traits>

#include <fmt/format.h>

namespace longhaul::harness {
namespace {

std::string text_of(const Plan& plan, const engine::WrongMessage& wrong) {
  std::string text = fmt::format("iteration {}, {}: ", wrong.iteration, to_text(plan, wrong.recv));
  text += wrong.verdict == engine::Payloads::Verdict::corrupted
              ? std::string{"corrupted"}
              : fmt::format("{} came instead", engine::to_text(wrong.found));
  if (wrong.came_wrong_to_sender)
    text += fmt::format(", and had come so to rank {}", index(plan.op(wrong.recv).peer));
  return text;
}

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
std::string worst_of(std::vector<training::WrongTensor> tensors) {
  static constexpr std::size_t kNamed = 3;
  std::ranges::stable_sort(tensors, std::ranges::greater{}, [](const training::WrongTensor& each) {
    return each.by >= 0 ? each.by : 1e300;
  });
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, tensors.size()); ++i)
    text += fmt::format("{}{}: {} {}", i > 0 ? "; " : "", tensors[i].tensor, tensors[i].what,
                        difference_text(tensors[i].by));
  if (tensors.size() > kNamed) text += fmt::format("; and {} more", tensors.size() - kNamed);
  return fmt::format("{} ({:g} is allowed)", text, tensors.front().allowed);
}

}  // namespace

std::vector<std::string> gather_wrong_messages(const engine::Ranks& ranks, const Plan& plan,
                                               const std::vector<engine::WrongMessage>& mine) {
  static_assert(std::is_trivially_copyable_v<engine::WrongMessage>);
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(std::span{mine}), counts);
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(engine::WrongMessage)) {
    engine::WrongMessage wrong;
    std::memcpy(&wrong, bytes.data() + at, sizeof wrong);
    texts.push_back(text_of(plan, wrong));
  }
  return texts;
}

std::vector<std::string> lines_of(const Plan& plan, int iteration,
                                  const std::vector<training::WrongTensor>& wrong) {
  std::map<std::optional<std::size_t>, std::vector<training::WrongTensor>> of_rank;
  for (const training::WrongTensor& each : wrong) of_rank[each.rank].push_back(each);
  std::vector<std::string> lines;
  for (auto& [rank, tensors] : of_rank)
    lines.push_back(fmt::format("iteration {}, {}: {}", iteration,
                                rank ? text_of(plan, *rank) : "all ranks",
                                worst_of(std::move(tensors))));
  return lines;
}

}  // namespace longhaul::harness
