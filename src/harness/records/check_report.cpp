#include "harness/records/check_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/unit_text.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::harness {
namespace {

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
