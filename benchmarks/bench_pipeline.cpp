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

/// What a part of a run leaves to the next.
struct PartEnd {
  TimePoint time{};  ///< when its files were written
  Rank played{};     ///< by this process: ranks of a datacenter lie on whole hosts
};

/// The iterations on these ranks. `left`: who left before them. `end` is the part's before, and
/// then this one's.
ExitCode run(comm::Communicator world, const harness::PipelineOptions& options,
             harness::PipelineSettings settings, const std::optional<harness::SiteLeft>& left,
             PartEnd& end) {
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
  if (left) input.left->gap = began - end.time;
  const auto outcomes = harness::with_watchdog(ranks, [&] {
    return harness::run_schedules(ranks, input, options, engine,
                                  harness::adapt_options_of(options, settings), environment,
                                  directory);
  });
  const Duration took = now() - began;
  nlohmann::json after = harness::described(environment.after(), options, input, transport);
  if (!after.is_null()) after["iterations_ns"] = took.count();
  gpus.add_to(after);
  const harness::ReportWriter writer{input, options};
  const std::string wrong = harness::on_rank0(ranks.world(), [&] {
    writer.write(outcomes, after, directory, environment.rank_clocks());
    return std::to_string(count_wrong(harness::segments_of(outcomes), settings));
  });
  ranks.host_ranks().mine().phase = comm::Phase::finished;
  end = {now(), ranks.self()};
  return wrong == "0" ? ExitCode::fine : ExitCode::answer_is_no;
}

/// All ranks, until a datacenter leaves; then those that stay, while its ranks sleep.
ExitCode run_leaving(const harness::PipelineOptions& options,
                     const harness::PipelineSettings& settings) {
  const comm::Communicator all = comm::Communicator::world();
  const harness::LeavingRun leaving = harness::plan_leave(all, options, settings.planner);
  PartEnd end;
  const ExitCode before = run(all.duplicate(), leaving.before, settings, {}, end);
  const std::optional<Rank> place = leaving.places[index(end.played)];
  comm::Communicator rest =
      all.split(place ? 0 : 1, place ? static_cast<int>(*place) : static_cast<int>(end.played));
  const ExitCode after = harness::run_on_some(all, place.has_value(), [&] {
    return run(std::move(rest), leaving.after, settings, leaving.left, end);
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
  PartEnd end;
  return run(comm::Communicator::world(), options, settings, {}, end);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
