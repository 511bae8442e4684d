// What does a collective take over these levels of network, by which algorithm, and is the number
// true? Plays collectives message by message on MPI ranks and holds them against the simulator.
#include <nlohmann/json.hpp>

#include "base/program/option_values.hpp"
#include "base/program/program.hpp"
#include "harness/collectives/collective_list.hpp"
#include "harness/collectives/collective_measurement.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/options/run_files.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"
#include "report/collective_options.hpp"
#include "report/record_file.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::bench {
namespace {

struct Options : harness::SharedOptions {
  std::string scenario;
  report::CollectiveArguments collective;
  int iterations = 8;
  int warmup = 1;
  std::string payload;
  std::string emulate = "on";
  std::string calls = "messages";
};

/// Rank 0 reads the file, and every rank takes the text.
Scenario read_scenario(const engine::Ranks& ranks, const Options& options) {
  const std::string text = harness::on_rank0(ranks.world(), [&] {
    const Scenario scenario = scenario::load_scenario(options.scenario, options.overrides);
    if (scenario.ranks() != ranks.count())
      fail(
          "scenario {} has {} ranks, and {} are running. Start it with scripts/mpi -n {} "
          "build/bin/bench_collectives {} ...",
          scenario.name, scenario.ranks(), ranks.count(), scenario.ranks(), options.scenario);
    if (!ranks.host_ranks().all_local() && options.emulate == "on")
      fail(
          "the ranks are on several hosts (durations would compare their clocks). Start all of "
          "them on one, or measure the machine with --emulate off.");
    if (!options.out.empty()) harness::require_free(options.out);
    return scenario.text;
  });
  return scenario::parse_scenario(text, options.scenario, options.overrides);
}

harness::CollectiveSettings settings_of(const Options& options, const Scenario& scenario) {
  harness::CollectiveSettings settings;
  settings.repetitions = {options.iterations, options.warmup};
  settings.device = harness::device_kind_of(options.device);
  settings.engine.run = scenario.run;
  settings.engine.payload =
      harness::payload_of(options.payload.empty() ? "64KiB" : options.payload);
  settings.engine.emulation = harness::emulation_of(options.emulate);
  settings.calls = choice<harness::CollectiveCalls>("--collectives", options.calls);
  const bool emulates = settings.engine.emulation == engine::Emulation::on &&
                        settings.calls == harness::CollectiveCalls::messages;
  if (!emulates && !options.payload.empty())
    fail(
        "--payload: it has no effect here (the machine is measured with whole messages). Leave it "
        "out.");
  if (!emulates && settings.device != harness::DeviceKind::cpu)
    fail("--device {}: without emulation numbers lie in the memory of the host. Use cpu.",
         options.device);
  return settings;
}

ExitCode run(const Options& options) {
  engine::Ranks ranks{{harness::deadline_of(options.deadline)}};
  const Scenario scenario = read_scenario(ranks, options).as_played();
  harness::Environment environment{ranks, options.command_line};
  harness::CollectiveSettings settings;
  std::vector<plan::Collective> collectives;
  harness::collectively([&] {
    settings = settings_of(options, scenario);
    collectives = harness::listed_collectives(options.collective, scenario);
  });
  harness::take_transport(ranks, comm::transport_kind_of(options.transport), settings.device);
  Progress progress{"bench_collectives", std::ssize(collectives)};
  std::int64_t done = 0;
  const std::vector<harness::CollectiveMeasurement> measured = harness::measure_collectives(
      collectives, scenario, ranks, settings, [&](const harness::CollectiveMeasurement& each) {
        environment.watch_load();
        if (ranks.is_first()) progress.update(++done, to_text(each.predicted.collective.kind));
      });
  const nlohmann::json after = environment.after();
  const std::string wrong = harness::on_rank0(ranks.world(), [&] {
    std::int64_t sum = 0;
    for (const harness::CollectiveMeasurement& each : measured) sum += each.wrong();
    nlohmann::ordered_json record = report::record_header({.benchmark = "bench_collectives",
                                                           .numbers = "measured",
                                                           .command_line = options.command_line});
    record["scenario"] = scenario.name;
    record["ranks"] = ranks.count();
    record["payload_bytes"] = settings.engine.payload.count();
    record["emulation"] = options.emulate;
    record["collectives_by"] = options.calls;
    record["check"] = sum == 0 ? "ok" : "wrong";
    record["environment"] = after;
    record["collectives"] = harness::collectives_json(measured);
    if (options.json) {
      fmt::print("{}\n", record.dump(2));
    } else {
      fmt::print("{}", harness::collective_tables(scenario.name, settings, measured));
    }
    if (!options.out.empty())
      harness::write_new_file(options.out / "record.json", record.dump(2) + "\n");
    return std::to_string(sum);
  });
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  return wrong == "0" ? ExitCode::fine : ExitCode::answer_is_no;
}

ExitCode main_of(int argc, char** argv) {
  Options options;
  Arguments arguments{
      "Plays collectives on MPI ranks, message by message: predicted against "
      "measured."};
  arguments.option("SCENARIO", options.scenario, "scenario (.toml)").required();
  report::add_collective_options(arguments, options.collective);
  arguments.option("--iterations", options.iterations, "measured")
      .shows_default()
      .within(1, 100'000);
  arguments.option("--warmup", options.warmup, "before them").shows_default().within(0, 1000);
  arguments.option("--payload", options.payload,
                   "cap on the bytes really sent (default: 64KiB; --emulate off sends all)");
  arguments.option("--emulate", options.emulate, "on, or off: the machine as it is")
      .shows_default();
  arguments
      .option("--collectives", options.calls,
              "messages, or native: MPI's own calls alone, as it is")
      .shows_default();
  harness::add_shared_options(arguments, options,
                              {{harness::Shared::overrides},
                               {harness::Shared::device},
                               {harness::Shared::transport, harness::transport_help()},
                               {harness::Shared::deadline},
                               {harness::Shared::ranks},
                               {harness::Shared::out, "directory for record.json"},
                               {harness::Shared::json}});
  arguments.footer(harness::help_footer(
      {"scripts/mpi -n 8 build/bin/bench_collectives benchmarks/scenarios/collectives-2dc.toml "
       "--kind all-reduce --bytes 8MB --algorithm all"}));
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
