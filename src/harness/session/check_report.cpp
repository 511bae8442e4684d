#include "harness/session/check_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"
#include "trace/timeline/timeline.hpp"

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

struct CheckPart {
  const char* key;  ///< in the record
  const char* one;  ///< for people
  const char* many;
  std::int64_t engine::Checks::*member;
};
constexpr CheckPart kWrong[] = {
    {"lost", "lost", "lost", &engine::Checks::lost},
    {"mixed_up", "mixed up", "mixed up", &engine::Checks::mixed_up},
    {"corrupted", "corrupted", "corrupted", &engine::Checks::corrupted},
    {"out_of_order", "out of order", "out of order", &engine::Checks::out_of_order},
    {"unclaimed", "unclaimed", "unclaimed", &engine::Checks::unclaimed},
    {"wrong_tensors", "wrong tensor", "wrong tensors", &engine::Checks::wrong_tensors}};

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

std::string check_text(const engine::Checks& checks) {
  std::string text;
  for (const CheckPart& part : kWrong) {
    const std::int64_t count = checks.*part.member;
    if (count != 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                          count == 1 ? part.one : part.many);
  }
  return text.empty() ? "ok" : text;
}

nlohmann::ordered_json checks_json(const engine::Checks& checks) {
  nlohmann::ordered_json json = {{"blocks", checks.blocks}, {"messages", checks.messages}};
  for (const MessageLeg leg : every<MessageLeg>())
    json["messages_of_leg"][longhaul::to_string(leg)] = checks.of_leg[index(leg)];
  json["relayed"] = checks.relayed;
  json["relayed_bytes"] = checks.relayed_bytes;
  for (const CheckPart& part : kWrong) json[part.key] = checks.*part.member;
  return json;
}

std::string message_notes(const std::string& schedule, const engine::Checks& checks,
                          const std::vector<std::string>& wrong_messages) {
  const auto of = [&](MessageLeg leg) { return checks.of_leg[index(leg)]; };
  std::string text;
  if (checks.relayed > 0)
    text += fmt::format(
        "{}: {} payloads relayed ({}); right on arrival: {} scatter, {} wan, {} gather, {} whole\n",
        schedule, checks.relayed, to_text(Bytes{checks.relayed_bytes}), of(MessageLeg::scatter),
        of(MessageLeg::wan), of(MessageLeg::gather), of(MessageLeg::whole));
  for (const std::string& wrong : wrong_messages)
    text += fmt::format("! {}: {}\n", schedule, wrong);
  return text;
}

}  // namespace longhaul::harness
