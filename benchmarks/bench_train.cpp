// How long until the loss is down? Replicas in several datacenters train one model on real data.
#include <optional>

#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"
#include "harness/training/train_control.hpp"
#include "harness/training/train_probes.hpp"
#include "harness/training/train_progress.hpp"
#include "report/record_file.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::bench {
namespace {

using harness::TrainOptions;
using harness::TrainSettings;

constexpr const char* kTiny = R"([scenario]
name = "tiny training"
[model]
layers = 4
hidden = 16
intermediate = 32
heads = 2
vocabulary = 32
sequence_length = 8
microbatch_size = 2
achieved_flops = 1e9
[parallel]
stages = 1
replicas = 2
microbatches = 1
gradient_sync = "compressed"
[train]
parts = 2
staleness = 1
[train.compress]
keep = "10%"
block = 4
[[datacenter]]
name = "west"
replicas = "0"
[[datacenter]]
name = "east"
replicas = "1"
[[link]]
between = ["west", "east"]
latency = "1ms"
bandwidth = "100Mbps"
)";

void make_tiny(TrainOptions& options) {
  options.scenario = "--check";
  options.data = "synthetic";
  options.iterations = 6;
  options.points = 2;
  options.held_out = 4;
  options.replay = true;
}

/// Rank 0 reads the file, and every rank takes its text.
Scenario read_scenario(const engine::Ranks& ranks, const TrainOptions& options) {
  const std::string text = harness::on_rank0(ranks.world(), [&]() -> std::string {
    if (options.check) return kTiny;
    return scenario::load_scenario(options.scenario, options.overrides).text;
  });
  Scenario scenario;
  harness::collectively([&] {
    scenario = scenario::parse_scenario(text, options.scenario, options.overrides);
    if (options.probes > 0) scenario.train.adapt.every = 0;  // probes are what it goes by
    scenario = harness::with_controller(std::move(scenario));
    harness::check_can_train(scenario, ranks.count());
  });
  return scenario;
}

ExitCode run(const TrainOptions& options, TrainSettings settings) {
  engine::Ranks ranks{{settings.deadline}};
  const Scenario scenario = read_scenario(ranks, options);
  if (!settings.target) settings.target = scenario.train.target;
  harness::TrainPlan plan{{}, options.schedule, options.data, {}, nullptr, {}};
  nlohmann::json asked;
  harness::collectively([&] {
    plan.methods = harness::train_methods(settings.probes > 0 ? "stella" : options.methods,
                                          scenario, settings.optimizer);
    if (settings.probes > 0) harness::check_probes(scenario, settings);
    asked = harness::asked_of(options, scenario, settings.target);
    harness::check_exchanges(plan.methods, options.schedule);
  });
  std::optional<harness::TrainProgress> kept;
  if (!options.out.empty()) kept.emplace(ranks.world(), options.out, options.resume, asked);
  if (kept && kept->complete())
    return harness::report_complete_training(ranks, options, *kept->complete());
  harness::Environment environment{ranks, options.command_line};
  plan.clock = environment.clock();
  plan.progress = kept ? &*kept : nullptr;
  const nlohmann::json before = environment.before();
  if (kept) kept->announce(harness::count_runs(plan, settings), before);
  std::optional<Progress> progress;
  if (ranks.is_first()) progress.emplace("bench_train", harness::count_runs(plan, settings));
  int done = 0;
  plan.done = [&](const std::string& what) {
    environment.watch_load();
    if (progress) progress->update(++done, what);
  };
  if (settings.probes > 0) {
    harness::probe(ranks, plan, options, settings, environment);
    if (kept) kept->forget();
    ranks.host_ranks().mine().phase = comm::Phase::finished;
    return ExitCode::fine;
  }
  const harness::TrainRun result = harness::run_training(ranks, plan, settings);
  const nlohmann::json after = environment.after();
  const std::string why = harness::on_rank0(ranks.world(), [&] {
    const auto record = harness::train_record(plan.methods, result, options, settings, after);
    const std::string wrong = harness::why_not_right(result);
    if (kept) kept->settle(wrong);
    if (!options.out.empty()) harness::write_train_files(record, plan.methods, result, options);
    fmt::print("{}", options.json ? report::json_text(record) : harness::train_text(record));
    if (!wrong.empty()) fmt::print(stderr, "longhaul: {}\n", wrong);
    return wrong;
  });
  if (kept) kept->forget();
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  return why.empty() ? ExitCode::fine : ExitCode::answer_is_no;
}

ExitCode main_of(int argc, char** argv) {
  TrainOptions options;
  Arguments arguments{"Trains one model in several datacenters: time until the loss is down."};
  harness::declare(arguments, options);
  options.command_line = harness::command_line(argc, argv);
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  if (options.check) make_tiny(options);
  TrainSettings settings;
  harness::collectively([&] { settings = harness::settings_of(options); });
  return run(options, settings);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
