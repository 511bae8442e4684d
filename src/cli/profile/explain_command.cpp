#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/profile/profile_inputs.hpp"
#include "profile/explanation.hpp"
#include "report/record_file.hpp"
#include "scenario/reader/load.hpp"
#include "scenario/text/config_node.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using profile::ExplainedOperator;
using profile::Explanation;

ordered_json optional_ns(const std::optional<Duration>& time) {
  return time ? ordered_json(time->count()) : ordered_json{};
}

ordered_json ratio_json(const ExplainedOperator& of) {
  if (!of.predicted || !of.measured || of.predicted->count() == 0) return {};
  return static_cast<double>(of.measured->count()) / static_cast<double>(of.predicted->count());
}

ordered_json explanation_json(const Explanation& explanation) {
  ordered_json json{{"span_ns", explanation.span.count()},
                    {"busy_ns", explanation.busy.count()},
                    {"waits_ns", (explanation.span - explanation.busy).count()},
                    {"longest_wait_ns", explanation.longest_wait.count()},
                    {"kernels_of_no_operator", explanation.orphans},
                    {"operators", ordered_json::array()}};
  for (const ExplainedOperator& each : explanation.operators)
    json["operators"].push_back({{"block", each.block},
                                 {"operator", each.operation},
                                 {"shape", each.shape},
                                 {"calls", each.calls},
                                 {"n", each.runs},
                                 {"predicted_ns", optional_ns(each.predicted)},
                                 {"measured_ns", optional_ns(each.measured)},
                                 {"ratio", ratio_json(each)},
                                 {"status", profile::to_string(each.status)}});
  return json;
}

std::string explanation_text(const Explanation& explanation, TableWidth width) {
  const auto text = [](const std::optional<Duration>& time) { return time ? to_text(*time) : "-"; };
  Table table{{{"block", Align::left},
               {"operator", Align::left},
               {"shape", Align::left},
               {"predicted"},
               {"measured"},
               {"n"},
               {"", Align::left}}};
  for (const ExplainedOperator& each : explanation.operators)
    table.add_row({each.block, each.operation, each.shape, text(each.predicted),
                   text(each.measured), std::to_string(each.runs),
                   profile::to_string(each.status)});
  return fmt::format(
      "{} from the first kernel to the last, {} without any (the longest wait {}); {} kernels that "
      "no operator launched\n\n{}",
      to_text(explanation.span), to_text(explanation.span - explanation.busy),
      to_text(explanation.longest_wait), explanation.orphans, table.text(width));
}

/// Of --profile, or of costs.profile of the scenario.
std::optional<scenario::ProfileTable> profile_of(const Options& options, const std::string& file) {
  if (!options.profile.profile.empty()) return profile_file(options.profile.profile);
  const scenario::ConfigNode root =
      scenario::scenario_tree(read_text_file(file), file, options.overrides);
  const scenario::ConfigNode* const costs = root.find("costs");
  const scenario::ConfigNode* const named = costs == nullptr ? nullptr : costs->find("profile");
  if (named == nullptr || named->text.empty()) return std::nullopt;
  return profile_file((std::filesystem::path{file}.parent_path() / named->text).string());
}

}  // namespace

Answer profile_explain_command(const Options& options) {
  const profile::KinetoTrace trace =
      profile::read_kineto(read_text_file(options.files[0]), options.files[0]);
  Scenario scenario = scenario_without_profile(options, options.files[1]);
  const std::optional<scenario::ProfileTable> table = profile_of(options, options.files[1]);
  if (table) take_type_of(*table, scenario);
  const Explanation explanation =
      profile::explained(trace, scenario::needed_operators(scenario), table ? &*table : nullptr);
  if (options.json) return {report::json_text(explanation_json(explanation))};
  return {explanation_text(explanation, table_width(options))};
}

}  // namespace longhaul::cli
