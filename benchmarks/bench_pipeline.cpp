// Which schedule should I run between these sites, what does it cost, and is the number true?
// Runs schedules of a scenario on MPI ranks and holds what it measures against the simulator.

#include "base/clock.hpp"
#include "base/program/program.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/gpu_report.hpp"
#include "harness/ranks/main.hpp"
#include "harness/records/credibility.hpp"
#include "harness/records/pipeline_output.hpp"
#include "harness/session/rank_map.hpp"

namespace longhaul::bench {
namespace {

/// The others wait while rank 0 merges: a second for 100'000 rows is many times what it takes.
Duration merge_time(const harness::PipelineInput& input) {
  std::int64_t rows = 0;
  for (const harness::PlannedSchedule& planned : input.schedules)
    rows += std::ssize(planned.plan.ops) * (input.iterations + 1);
  return std::chrono::microseconds{10} * rows;
}

std::vector<harness::SwitchingOutcome> run_all(engine::Ranks& ranks,
                                               const harness::PipelineInput& input,
                                               const harness::PipelineOptions& options,
                                               const engine::EngineOptions& engine,
                                               const harness::AdaptOptions& adapt,
                                               harness::Environment& environment,
                                               harness::RunDirectory& directory) {
  int total = (input.iterations + input.warmup) * static_cast<int>(input.schedules.size());
  for (const harness::EarlierIterations& earlier : directory.earlier()) total -= earlier.count;
  std::optional<Progress> progress;
  if (ranks.is_first()) progress.emplace("bench_pipeline", total);
  int done = 0;
  const harness::PipelineSinks sinks{
      harness::traced_directory(options),
      environment.clock(),
      [&](const std::string& schedule) {
        environment.watch_load();
        ++done;
        if (progress) progress->update(done, schedule);
      },
      directory.earlier(),
      [&](const harness::IterationNote& note) { directory.note(note); },
      [&](int position, const harness::PipelineMeasurement& measurement) {
        directory.note_end(position, measurement);
      }};
  std::vector<harness::SwitchingOutcome> outcomes;
  const Duration patience = std::chrono::seconds{5};  // for a segment to be written
  ranks.watchdog().set_patience(patience);
  int next_position = static_cast<int>(input.schedules.size());
  for (std::size_t i = 0; i < input.schedules.size(); ++i)
    outcomes.push_back(
        harness::run_switching(ranks, input, i, engine, adapt, sinks, next_position));
  ranks.watchdog().set_patience(24 * patience + merge_time(input));
  return outcomes;
}

ExitCode run(const harness::PipelineOptions& options, harness::PipelineSettings settings) {
  std::optional<engine::Ranks> made{std::in_place, engine::WatchdogOptions{settings.deadline}};
  harness::PipelineInput input = harness::prepare_input(*made, options, settings.planner);
  harness::place_ranks(made, input, settings);
  engine::Ranks& ranks = *made;
  if (options.print_map) {
    harness::print_map(ranks, input.scenario, options.json);
    ranks.host_ranks().mine().phase = comm::Phase::finished;
    return ExitCode::fine;
  }
  if (input.is_complete) {
    const std::string code = harness::on_rank0(ranks.world(), [&] {
      return std::to_string(static_cast<int>(harness::report_complete(options)));
    });
    ranks.host_ranks().mine().phase = comm::Phase::finished;
    return static_cast<ExitCode>(std::stoi(code));
  }
  input.compute = settings.compute;
  harness::collectively([&] { harness::check_real_input(input); });
  if (options.adaptive) harness::keep_best(input);
  input.sent = harness::choose_caps(ranks, input, settings);
  harness::Environment environment{ranks, options.command_line};
  engine::EngineOptions& engine = settings.engine;
  engine.run = input.scenario.run;
  engine.payload = input.sent.caps.message;
  engine.vector = input.sent.caps.vector;
  if (!ranks.host_ranks().all_local()) engine.clock_offset = environment.clock().offset;
  const comm::TransportChoice transport =
      harness::take_transport(ranks, settings.transport, settings.compute.device);
  const nlohmann::json before = harness::described(environment.before(), options, input, transport);
  harness::PipelineOptions kept = options;
  kept.out = harness::traced_directory(options);
  harness::RunDirectory directory{ranks, input, kept, harness::info_of(input, options, before)};
  harness::prepare_write_fault(engine.fault, ranks.self());
  const harness::GpuReport gpus{ranks, settings.compute.device};
  const TimePoint began = now();
  const auto outcomes = harness::with_watchdog(ranks, [&] {
    return run_all(ranks, input, options, engine, harness::adapt_options_of(options, settings),
                   environment, directory);
  });
  const Duration took = now() - began;
  nlohmann::json after = harness::described(environment.after(), options, input, transport);
  if (!after.is_null()) after["iterations_ns"] = took.count();
  gpus.add_to(after);
  const harness::ReportWriter writer{input, options};
  const std::string wrong = harness::on_rank0(ranks.world(), [&] {
    writer.write(outcomes, after, directory, environment.rank_clocks());
    std::int64_t sum = 0;
    const auto segments = harness::segments_of(outcomes);
    for (const harness::PipelineMeasurement& m : segments) sum += m.checks.wrong();
    if (!settings.max_difference_percent) return std::to_string(sum);
    const std::string missed = harness::missed_text(segments, *settings.max_difference_percent);
    fmt::print(stderr, "{}", missed);
    sum += missed.empty() ? 0 : 1;
    return std::to_string(sum);
  });
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  return wrong == "0" ? ExitCode::fine : ExitCode::answer_is_no;
}

ExitCode main_of(int argc, char** argv) {
  harness::PipelineOptions options;
  Arguments arguments{"Runs schedules of a scenario on MPI ranks: predicted against measured."};
  harness::declare(arguments, options);
  options.command_line = harness::command_line(argc, argv);
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  harness::PipelineSettings settings;
  harness::collectively([&] { settings = harness::settings_of(options); });
  return run(options, settings);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
