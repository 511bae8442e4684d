// Which schedule should I run between these sites, what does it cost, and is the number true?
// Runs schedules of a scenario on MPI ranks and holds what it measures against the simulator.

#include "base/clock.hpp"
#include "base/program/program.hpp"
#include "harness/pipeline_run/run_schedules.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/gpu_report.hpp"
#include "harness/ranks/main.hpp"
#include "harness/records/credibility.hpp"
#include "harness/records/pipeline_output.hpp"
#include "harness/session/rank_map.hpp"
#include "harness/session/site_leave.hpp"

namespace longhaul::bench {
namespace {

/// What checks found, and 1 for medians that are too far from their predictions, which it prints.
std::int64_t count_wrong(const std::vector<harness::PipelineMeasurement>& segments,
                         const harness::PipelineSettings& settings) {
  std::int64_t wrong = 0;
  for (const harness::PipelineMeasurement& m : segments) wrong += m.checks.wrong();
  if (!settings.max_difference_percent) return wrong;
  const std::string missed = harness::missed_text(segments, *settings.max_difference_percent);
  fmt::print(stderr, "{}", missed);
  return wrong + (missed.empty() ? 0 : 1);
}

/// The iterations on these ranks. `left`: who left before them; `ended`: when the part before did,
/// and then when this one did.
ExitCode run(comm::Communicator world, const harness::PipelineOptions& options,
             harness::PipelineSettings settings, const std::optional<harness::SiteLeft>& left,
             TimePoint& ended) {
  std::optional<engine::Ranks> made{std::in_place, std::move(world),
                                    engine::WatchdogOptions{settings.deadline}};
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
  input.left = left;
  if (left) input.left->gap = began - ended;
  const auto outcomes = harness::with_watchdog(ranks, [&] {
    return harness::run_schedules(ranks, input, options, engine,
                                  harness::adapt_options_of(options, settings), environment,
                                  directory);
  });
  ended = now();
  nlohmann::json after = harness::described(environment.after(), options, input, transport);
  if (!after.is_null()) after["iterations_ns"] = (ended - began).count();
  gpus.add_to(after);
  const harness::ReportWriter writer{input, options};
  const std::string wrong = harness::on_rank0(ranks.world(), [&] {
    writer.write(outcomes, after, directory, environment.rank_clocks());
    return std::to_string(count_wrong(harness::segments_of(outcomes), settings));
  });
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  return wrong == "0" ? ExitCode::fine : ExitCode::answer_is_no;
}

/// All ranks, until a datacenter leaves; then those that stay, while its ranks sleep.
ExitCode run_leaving(const harness::PipelineOptions& options,
                     const harness::PipelineSettings& settings) {
  const comm::Communicator all = comm::Communicator::world();
  const harness::LeavingRun leaving = harness::plan_leave(all, options, settings.planner);
  TimePoint ended{};
  const ExitCode before = run(all.duplicate(), leaving.before, settings, {}, ended);
  const bool stays = leaving.rank_after.has_value();
  comm::Communicator rest = all.split(stays ? 0 : 1, leaving.rank_after.value_or(0));
  const ExitCode after = harness::run_on_some(all, stays, [&] {
    return run(std::move(rest), leaving.after, settings, leaving.left, ended);
  });
  return std::max(before, after);
}

ExitCode main_of(int argc, char** argv) {
  harness::PipelineOptions options;
  Arguments arguments{"Runs schedules of a scenario on MPI ranks: predicted against measured."};
  harness::declare(arguments, options);
  options.command_line = harness::command_line(argc, argv);
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  harness::PipelineSettings settings;
  harness::collectively([&] { settings = harness::settings_of(options); });
  if (!options.leave.empty()) return run_leaving(options, settings);
  TimePoint ended{};
  return run(comm::Communicator::world(), options, settings, {}, ended);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
