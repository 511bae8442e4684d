#include <optional>
#include <ostream>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/profile/profile_inputs.hpp"
#include "profile/operator_graph.hpp"
#include "profile/shape_law.hpp"
#include "report/record_file.hpp"
#include "scenario/files/profiled_operators.hpp"

namespace longhaul::cli {

using nlohmann::ordered_json;
using profile::ShapeTime;
using scenario::NeededOperator;

Scenario scenario_without_profile(const Options& options, const std::string& file) {
  Options plain = options;
  plain.files = {file};
  for (const char* key : {"profile", "collectives", "tasks"})
    plain.overrides.push_back(fmt::format("costs.{}=", key));
  Scenario scenario = scenario_of(plain);
  if (!scenario.model) fail("{} has no [model] (operators follow from its sizes). Add one.", file);
  return scenario;
}

void take_type_of(const scenario::ProfileTable& table, Scenario& scenario) {
  const std::string type = scenario::type_of_profile(table, *scenario.model);
  scenario.model->precision = type == "f32"   ? Precision::fp32
                              : type == "f16" ? Precision::fp16
                                              : Precision::bf16;
}

namespace {

/// By a profile: measured, or by the law of the operator's shapes.
class TimesOfShapes {
public:
  TimesOfShapes(const std::string& file, bool extrapolates)
      : table_{profile_file(file)},
        laws_{profile::shape_laws(table_)},
        extrapolates_{extrapolates} {}

  [[nodiscard]] const scenario::ProfileTable& table() const { return table_; }

  [[nodiscard]] ShapeTime at(const NeededOperator& needed) const {
    const scenario::ProfileRow wanted{
        needed.part, needed.block, needed.operation, needed.shape, needed.type, 1, {}, 0};
    if (const scenario::ProfileRow* const row = table_.find_anywhere(wanted)) return {row->median};
    const auto law = laws_.find({needed.operation, needed.type});
    if (law == laws_.end())
      fail("{}: there is no {} in {} (block {} of part {} needs {}). {}Measure it.", table_.source,
           needed.operation, needed.type, needed.block, needed.part, needed.shape,
           scenario::nearest_shapes(table_, wanted));
    const ShapeTime time = law->second.at(needed.shape);
    if (time.beyond > profile::kFarthest && !extrapolates_)
      fail(
          "{}: {} of {} lies {:.1f} times beyond the shapes that were measured (beyond {} times a "
          "law is a guess). {}Measure it, or give --extrapolate.",
          table_.source, needed.operation, needed.shape, time.beyond, profile::kFarthest,
          scenario::nearest_shapes(table_, wanted));
    return time;
  }

private:
  scenario::ProfileTable table_;
  profile::ShapeLaws laws_;
  bool extrapolates_;
};

std::string needed_csv(const std::vector<NeededOperator>& needed,
                       const std::vector<ShapeTime>& times) {
  std::string text = "part,block,operator,shape,type,calls";
  text += times.empty() ? "\n" : ",median_ns,basis\n";
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const NeededOperator& each = needed[i];
    text += fmt::format("{},{},{},{},{},{}", each.part, each.block, each.operation, each.shape,
                        each.type, each.calls);
    if (!times.empty())
      text += fmt::format(",{},{}", times[i].time.count(), profile::to_string(times[i].basis));
    text += '\n';
  }
  return text;
}

std::string needed_text(const std::vector<NeededOperator>& needed,
                        const std::vector<ShapeTime>& times, TableWidth width) {
  std::vector<Table::Column> columns{{"part", Align::left},     {"block", Align::left},
                                     {"operator", Align::left}, {"shape", Align::left},
                                     {"type", Align::left},     {"calls"}};
  if (!times.empty()) {
    columns.push_back({"a call"});
    columns.push_back({"basis", Align::left});
  }
  Table table{columns};
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const NeededOperator& each = needed[i];
    std::vector<std::string> row{each.part,  each.block, each.operation,
                                 each.shape, each.type,  std::to_string(each.calls)};
    if (!times.empty()) {
      row.push_back(to_text(times[i].time));
      row.emplace_back(profile::to_string(times[i].basis));
    }
    table.add_row(row);
  }
  return table.text(width);
}

ordered_json needed_json(const std::vector<NeededOperator>& needed,
                         const std::vector<ShapeTime>& times) {
  ordered_json all = ordered_json::array();
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const NeededOperator& each = needed[i];
    all.push_back({{"part", each.part},
                   {"block", each.block},
                   {"operator", each.operation},
                   {"shape", each.shape},
                   {"type", each.type},
                   {"calls", each.calls}});
    if (times.empty()) continue;
    all.back()["median_ns"] = times[i].time.count();
    all.back()["basis"] = profile::to_string(times[i].basis);
    all.back()["beyond"] = times[i].beyond;
  }
  return all;
}

}  // namespace

Answer profile_needed_command(const Options& options) {
  if (!options.out.empty()) report::require_new_file(options.out);
  Scenario scenario = scenario_without_profile(options, options.files.front());
  std::vector<NeededOperator> needed;
  std::vector<ShapeTime> times;
  if (options.profile.profile.empty()) {
    needed = scenario::needed_operators(scenario);
  } else {
    const TimesOfShapes shapes{options.profile.profile, options.predict.extrapolate};
    take_type_of(shapes.table(), scenario);
    needed = scenario::needed_operators(scenario);
    for (const NeededOperator& each : needed) times.push_back(shapes.at(each));
  }
  if (!options.out.empty())
    report::write_new_file(options.out,
                           [&](std::ostream& out) { out << needed_csv(needed, times); });
  if (!options.json) return {needed_text(needed, times, table_width(options))};
  return {
      report::json_text({{"scenario", scenario.name}, {"operators", needed_json(needed, times)}})};
}

}  // namespace longhaul::cli
