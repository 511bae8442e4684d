#include "cli/leg_table.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"

namespace longhaul {
namespace {

const LegUse& use_of(const IterationReport& report, MessageLeg leg) {
  return report.legs[index(leg)];
}

bool relays(const IterationReport& report) { return use_of(report, MessageLeg::wan).messages > 0; }

}  // namespace

nlohmann::ordered_json legs_json(const IterationReport& report) {
  nlohmann::ordered_json json;
  for (const MessageLeg leg : every<MessageLeg>()) {
    const LegUse& use = use_of(report, leg);
    json[to_string(leg)] = {
        {"messages", use.messages}, {"bytes", use.bytes}, {"busy_ns", use.busy_ns}};
  }
  return json;
}

std::string leg_table_text(const std::vector<LegsOfSchedule>& schedules) {
  Table table{{{"schedule", Align::left},
               {"leg", Align::left},
               {"messages"},
               {"bytes"},
               {"transfers, sum"}}};
  bool any = false;
  for (const LegsOfSchedule& each : schedules) {
    if (!relays(each.report)) continue;
    any = true;
    for (const MessageLeg leg : every<MessageLeg>()) {
      const LegUse& use = use_of(each.report, leg);
      if (use.messages == 0) continue;
      table.add_row({each.schedule, to_string(leg), std::to_string(use.messages),
                     to_text(Bytes{use.bytes}), to_text(Duration{use.busy_ns})});
    }
  }
  return any ? "\nmessages of an iteration, each once for every leg of its way\n" + table.text()
             : "";
}

}  // namespace longhaul
