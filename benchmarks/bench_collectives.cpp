// What does a collective take over these levels of network, by which algorithm, and is the number
// true? Plays collectives message by message on MPI ranks and holds them against the simulator, and
// against MPI's own.
#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "harness/collectives/collective_run.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::bench {
namespace {

using Options = harness::CollectiveOptions;

/// Rank 0 reads the file, and every rank takes the text.
Scenario read_scenario(const engine::Ranks& ranks, const Options& options) {
  const std::string text = harness::on_rank0(ranks.world(), [&] {
    const Scenario scenario = scenario::load_scenario(options.scenario, options.overrides);
    if (scenario.ranks() != ranks.count())
      fail(
          "scenario {} has {} ranks, and {} are running. Start it with scripts/mpi -n {} "
          "build/bin/bench_collectives {} ...",
          scenario.name, scenario.ranks(), ranks.count(), scenario.ranks(), options.scenario);
    if (!options.out.empty()) harness::require_free(options.out);
    return scenario.text;
  });
  return scenario::parse_scenario(text, options.scenario, options.overrides);
}

ExitCode run(const Options& options) {
  engine::Ranks ranks{{harness::deadline_of(options.deadline)}};
  const Scenario scenario = read_scenario(ranks, options).as_played();
  harness::Environment environment{ranks, options.command_line};
  harness::CollectiveSettings settings;
  std::vector<plan::Collective> collectives;
  harness::collectively([&] {
    settings = harness::settings_of(options, scenario);
    if (!ranks.host_ranks().all_local()) settings.engine.clock_offset = environment.clock().offset;
    collectives = harness::collectives_of(options, scenario);
  });
  settings.own = harness::own_calls_of(
      settings,
      harness::take_transport(ranks, comm::transport_kind_of(options.transport), settings.device));
  Progress progress{"bench_collectives", std::ssize(collectives)};
  std::int64_t done = 0;
  const std::vector<harness::CollectiveMeasurement> measured = harness::measure_collectives(
      collectives, scenario, ranks, settings, [&](const harness::CollectiveMeasurement& each) {
        environment.watch_load();
        if (ranks.is_first()) progress.update(++done, to_text(each.predicted.collective.kind));
      });
  const nlohmann::json after = environment.after();
  const std::string wrong = harness::on_rank0(ranks.world(), [&] {
    return std::to_string(
        harness::finish_collectives(options, scenario, settings, measured, after));
  });
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  return wrong == "0" ? ExitCode::fine : ExitCode::answer_is_no;
}

ExitCode main_of(int argc, char** argv) {
  Options options;
  Arguments arguments{
      "Plays collectives on MPI ranks, message by message: predicted against "
      "measured."};
  harness::declare(arguments, options);
  options.command_line = harness::command_line(argc, argv);
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  return run(options);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
