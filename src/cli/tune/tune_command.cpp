#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "cli/tune/family.hpp"
#include "planner/tune/tune_problem.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

std::vector<Bandwidth> bandwidths_of(const std::string& typed) {
  if (typed.empty())
    fail(
        "tune: --bandwidth is missing (of the link between sites). Give it, as in --bandwidth "
        "100Mbps,1Gbps.");
  std::vector<Bandwidth> bandwidths;
  for (const std::string& word : longhaul::words_of(typed, ',')) {
    try {
      bandwidths.push_back(parse_bandwidth(word));
    } catch (const Error& error) {
      fail("--bandwidth: {}", error.what());
    }
    if (!(bandwidths.back().bits_per_second() > 0))
      fail("--bandwidth: {} carries nothing. Give more.", word);
  }
  return bandwidths;
}

/// Of one bandwidth.
struct TunedSetting {
  Bandwidth bandwidth;
  planner::TuneChoice choice;
  std::optional<double> exhaustive_gap;  ///< none: too many settings to try
  Duration took{};
};

TunedSetting tuned(const planner::TuneProblem& problem, const planner::Surrogate& surrogate,
                   Bandwidth bandwidth) {
  const TimePoint begin = now();
  TunedSetting setting{bandwidth, planner::tune(problem, surrogate, bandwidth), {}, {}};
  setting.took = now() - begin;
  const double objective = setting.choice.objective;
  if (const auto best = planner::tune_exhaustively(problem, surrogate, bandwidth))
    // Of many kinds of GPUs the choice itself may be better than all that were tried.
    setting.exhaustive_gap =
        std::max(0.0, objective - best->objective) / std::fabs(best->objective);
  return setting;
}

ordered_json json_of(const TunedSetting& setting) {
  const planner::TuneChoice& choice = setting.choice;
  ordered_json json;
  json["bandwidth_bits_per_second"] = setting.bandwidth.bits_per_second();
  json["batch"] = choice.batch;
  json["compression_rate"] = choice.compression_rate;
  json["iteration_ns"] = std::llround(choice.seconds * 1e9);
  json["g"] = choice.g;
  json["tta_per_sample_ns"] = choice.seconds_per_sample * 1e9;
  json["binding"] = to_string(choice.binding);
  json["exhaustive_gap"] =
      setting.exhaustive_gap ? ordered_json(*setting.exhaustive_gap) : ordered_json{};
  json["decision_ns"] = setting.took.count();
  return json;
}

int sum_of(const std::vector<int>& batch) {
  int sum = 0;
  for (const int samples : batch) sum += samples;
  return sum;
}

std::string text_of(const std::vector<TunedSetting>& settings, TableWidth width) {
  Table table{{{"bandwidth"},
               {"samples"},
               {"batches", Align::left},
               {"rate [%]"},
               {"iteration"},
               {"g"},
               {"gap [%]"}}};
  for (const TunedSetting& setting : settings) {
    const planner::TuneChoice& choice = setting.choice;
    table.add_row({to_text(setting.bandwidth), fmt::format("{}", sum_of(choice.batch)),
                   fmt::format("{}", fmt::join(choice.batch, " ")),
                   fmt::format("{:.2f}", 100 * choice.compression_rate),
                   to_text(Duration{std::llround(choice.seconds * 1e9)}),
                   fmt::format("{:.4f}", choice.g),
                   setting.exhaustive_gap ? fmt::format("{:.3f}", 100 * *setting.exhaustive_gap)
                                          : std::string{"-"}});
  }
  return table.text(width);
}

/// Names of files come from the command line.
std::string probes_file_of(const TuneArguments& typed) {
  if (typed.probes.empty())
    fail(
        "tune: --probes is missing (measured convergence). Name a table, as bench_train --probes "
        "writes it.");
  return typed.probes;
}

}  // namespace

void add_tune_options(Arguments& command, TuneArguments& arguments) {
  command.option("--probes", arguments.probes,
                 "table (.csv): model, version, batch, compression_rate, g");
  command.option("--bandwidth", arguments.bandwidth, "comma list, as in 100Mbps,1Gbps");
  command.option("--lambda", arguments.lambda,
                 "weight of the spread of iteration times (default: [train] lambda)");
  command.option("--family", arguments.family,
                 "which method to train by: all of --curves, or a comma list");
  command.option("--curves", arguments.curves,
                 "table (.csv) of how methods learn: method, seed, updates, validation, ...");
  command.option("--target", arguments.target, "loss=X (default: [train] target)");
  command.flag("--between", arguments.between,
               "with --family: also methods whose one knob lies between two curves, composed");
}

Answer tune_command(const Options& options) {
  const TuneArguments& typed = options.tune;
  if (!typed.family.empty()) {
    if (!typed.probes.empty() || !typed.lambda.empty())
      fail("--family chooses no batches (--probes and --lambda are of them). Leave those out.");
    return tune_family(options, typed.bandwidth.empty() ? std::vector<Bandwidth>{}
                                                        : bandwidths_of(typed.bandwidth));
  }
  if (!typed.curves.empty() || !typed.target.empty() || typed.between)
    fail("--curves, --target and --between are of --family. Give --family all.");
  const std::vector<Bandwidth> bandwidths = bandwidths_of(typed.bandwidth);
  const Scenario scenario = scenario_of(options);
  planner::TuneProblem problem = planner::tune_problem_of(scenario);
  if (!typed.lambda.empty()) {
    const std::optional<double> lambda = read_double(typed.lambda);
    if (!lambda || !(*lambda >= 0 && *lambda <= 1e9))
      fail("--lambda: \"{}\" is no weight from 0 on. Give one.", typed.lambda);
    problem.lambda = *lambda;
  }
  const planner::Surrogate surrogate{planner::probes_for(scenario, probes_file_of(typed)).probes};
  std::vector<TunedSetting> settings;
  for (const Bandwidth bandwidth : bandwidths)
    settings.push_back(tuned(problem, surrogate, bandwidth));
  if (!options.json) return {text_of(settings, table_width(options))};
  ordered_json json =
      report::record_header({.creator = "longhaul", .command_line = options.command_line});
  json["scenario"] = scenario.name;
  json["lambda"] = problem.lambda;
  json["settings"] = ordered_json::array();
  for (const TunedSetting& setting : settings) json["settings"].push_back(json_of(setting));
  json["surrogate"] = {{"leave_one_out_rms", surrogate.leave_one_out_rms()},
                       {"length_scales", surrogate.length_scales()}};
  return {report::json_text(json)};
}

}  // namespace longhaul::cli
