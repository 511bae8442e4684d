#include "report/granularity.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "base/suggest.hpp"

namespace longhaul::report {
void add_granularity_option(Arguments& command, std::string& text) {
  command.option("--granularity", text,
                 "block (default); operator: what lies below blocks, of [model], costs.profile "
                 "or [[operator]]; or task: the kernels of these");
}

Granularity granularity_of(std::string_view text) {
  if (text.empty()) return Granularity::blocks;
  if (const auto known = from_string<Granularity>(text)) return *known;
  fail("--granularity: unknown granularity \"{}\". {}", text,
       suggestion(std::string{text}, every_name<Granularity>()));
}

OperatorReport report_operators(const Plan& plan) {
  OperatorReport report{plan::count_operators(plan), {}};
  const plan::OperatorLists& lists = *plan.operators;
  std::vector<OperatorUse> uses;
  for (const std::string& name : lists.names) uses.push_back({name, {}, 0});
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::compute) continue;
    Duration begin{};
    const auto list = lists.list(plan::OperatorListId{op.match});
    for (const plan::OperatorStep& step : list) {
      const Duration end = portion(op.duration, step.end, list.back().end);
      uses[step.name].busy += end - begin;
      ++uses[step.name].count;
      begin = end;
    }
  }
  std::erase_if(uses, [](const OperatorUse& use) { return use.count == 0; });
  std::ranges::stable_sort(uses, std::ranges::greater{}, &OperatorUse::busy);
  report.uses = std::move(uses);
  return report;
}

nlohmann::ordered_json to_json(const OperatorReport& report) {
  nlohmann::ordered_json json{{"blocks", report.count.blocks},
                              {"operators", report.count.operators},
                              {"lists", report.count.lists},
                              {"uses", nlohmann::ordered_json::array()}};
  for (const OperatorUse& use : report.uses)
    json["uses"].push_back(
        {{"operator", use.name}, {"busy_ns", use.busy.count()}, {"count", use.count}});
  return json;
}

}  // namespace longhaul::report
