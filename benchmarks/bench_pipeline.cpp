// Which schedule should I run between these sites, what does it cost, and is the number true?
// Runs schedules of a scenario on MPI ranks and holds what it measures against the simulator.
#include <CLI/CLI.hpp>

#include "base/clock.hpp"
#include "base/progress.hpp"
#include "base/version.hpp"
#include "harness/checkpoint/resume.hpp"
#include "harness/options/record_files.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/gpu_report.hpp"
#include "harness/ranks/main.hpp"
#include "harness/ranks/transport_choice.hpp"
#include "harness/records/pipeline_record.hpp"
#include "harness/records/switching_record.hpp"
#include "harness/records/weather_report.hpp"
#include "harness/session/rank_map.hpp"

namespace longhaul::bench {
namespace {

void declare(CLI::App& app, PipelineOptions& options) {
  app.add_option("scenario", options.scenario, "scenario file (TOML)")->required();
  app.add_option("--schedule", options.schedule,
                 "comma list of schedules and .csv files; static, dynamic: all of these; best")
      ->capture_default_str();
  add_planner_options(app, options.planner);
  app.add_option("--comm", options.comm, "grouped or decoupled communication")
      ->capture_default_str();
  app.add_option("--iterations", options.iterations, "measured iterations of each schedule")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--confidence", options.confidence,
                 "go on until the 95% interval of a schedule's median is narrower than this: 5%; "
                 "--iterations are then the least");
  app.add_option("--max-iterations", options.max_iterations,
                 "the most iterations with --confidence (default: 100)")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--warmup", options.warmup, "iterations before them")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--set", options.overrides, "PATH=VALUE: overrides the scenario")
      ->allow_extra_args(false);
  app.add_option("--change", options.changes,
                 "ITERATION:PATH=VALUE: links or node interfaces change there; repeatable")
      ->allow_extra_args(false);
  app.add_flag("--adaptive", options.adaptive,
               "select the best of --schedule, and anew when the ranks measure other links");
  app.add_option("--switch-threshold", options.switch_threshold_percent,
                 "deviation of a link or block, in percent, that calls for another selection")
      ->capture_default_str();
  app.add_option("--out", options.out, "directory for trace.h5 and record.json");
  app.add_option("--trace", options.trace, "on, or off: --out gets record.json alone")
      ->capture_default_str();
  app.add_flag("--resume", options.resume,
               "go on in --out behind the last finished iteration of each schedule");
  add_compute_options(app, options.compute);
  app.add_option("--payload", options.payload, "cap on the bytes really sent for a message")
      ->capture_default_str();
  app.add_option("--emulate", options.emulate, "on, or off: the network as it is")
      ->capture_default_str();
  add_transport_option(app, options.transport);
  app.add_option("--deadline", options.deadline, "end a run in which a rank hangs for so long")
      ->capture_default_str();
  add_ranks_per_process(app, options.ranks_per_process);
  app.add_option("--credit", options.credit,
                 "how much lateness of this host's timers is made up for; 0s: none")
      ->capture_default_str();
  app.add_flag("--print-map", options.print_map,
               "print which rank is where (host, stage, device, cores), and run nothing");
  app.add_flag("--json", options.json, "print the record instead of tables");
  app.add_option("--fault", options.fault)->group("");  // for tests
}

RunInfo info_of(const PipelineInput& input, const PipelineOptions& options,
                const nlohmann::json& environment) {
  RunInfo info;
  info.creator = fmt::format("bench_pipeline {}", version());
  info.git_commit = git_commit();
  info.command_line = options.command_line;
  info.scenario = input.scenario.text;
  info.environment = environment.dump();
  info.time_scale = input.time_scale;
  info.activation_budget_bytes = input.scenario.activation_budget().count();
  return info;
}

/// The others wait while rank 0 merges: a second for 100'000 rows is many times what it takes.
Duration merge_time(const PipelineInput& input) {
  std::int64_t rows = 0;
  for (const PlannedSchedule& planned : input.schedules)
    rows += std::ssize(planned.plan.ops) * (input.iterations + 1);
  return std::chrono::microseconds{10} * rows;
}

/// Where rows go; empty: nowhere.
std::filesystem::path traced_directory(const PipelineOptions& options) {
  return options.trace == "on" ? options.out : std::filesystem::path{};
}

std::vector<ChangingOutcome> run_all(Ranks& ranks, const PipelineInput& input,
                                     const PipelineOptions& options, const EngineOptions& engine,
                                     const AdaptOptions& adapt, const ClockOffset& clock,
                                     RunDirectory& directory) {
  int total = (input.iterations + input.warmup) * static_cast<int>(input.schedules.size());
  for (const EarlierIterations& earlier : directory.earlier()) total -= earlier.count;
  std::optional<Progress> progress;
  if (ranks.is_first()) progress.emplace("bench_pipeline", total);
  int done = 0;
  const PipelineSinks sinks{traced_directory(options),
                            clock,
                            [&](const std::string& schedule) {
                              ++done;
                              if (progress) progress->update(done, schedule);
                            },
                            directory.earlier(),
                            [&](int position, int iteration, const IterationResult& result) {
                              directory.note(position, iteration, result);
                            },
                            [&](int position, const PipelineMeasurement& measurement) {
                              directory.note_end(position, measurement);
                            }};
  std::vector<ChangingOutcome> outcomes;
  const Duration patience = std::chrono::seconds{5};  // for a segment to be written
  ranks.watchdog().set_patience(patience);
  int next_position = static_cast<int>(input.schedules.size());
  for (std::size_t i = 0; i < input.schedules.size(); ++i)
    outcomes.push_back(run_changing(ranks, input, i, engine, adapt, sinks, next_position));
  ranks.watchdog().set_patience(24 * patience + merge_time(input));
  return outcomes;
}

/// What a run ends with, on rank 0: the record, tables and one trace.
class ReportWriter {
public:
  /// Both must live as long.
  ReportWriter(const PipelineInput& input, const PipelineOptions& options)
      : input_{input}, options_{options} {}

  /// Prints the record or tables, and fills --out.
  void write(const std::vector<ChangingOutcome>& outcomes, nlohmann::json environment,
             RunDirectory& directory, const std::vector<RankClock>& clocks) const {
    const nlohmann::json parts = directory.parts();
    if (!parts.is_null()) environment["parts"] = parts;
    const std::vector<PipelineMeasurement> measurements = stretches_of(outcomes);
    auto record = pipeline_record(measurements, input_, options_, environment);
    add_changes(record, outcomes, options_);
    if (options_.json) {
      fmt::print("{}\n", record.dump(2));
    } else {
      fmt::print("{}{}{}{}", pipeline_table(measurements, input_, options_), changes_text(outcomes),
                 transport_note(environment), parts_text(parts));
    }
    std::fflush(stdout);
    if (options_.out.empty()) return;
    if (const auto weather = weather_environment(measurements); !weather.is_null())
      environment["weather"] = weather;
    if (!record["switches"].empty()) environment["switches"] = record["switches"];
    // How clocks drifted is known of this part of the run alone.
    if (options_.trace == "on")
      merge_segments(environment, outcomes, parts.is_null() ? clocks : std::vector<RankClock>{});
    write_new_file(options_.out / "record.json", record.dump(2) + "\n");
    directory.finish();
  }

private:
  /// One trace of all segments. They stay where one is damaged, for whoever goes on.
  void merge_segments(const nlohmann::json& environment,
                      const std::vector<ChangingOutcome>& outcomes,
                      const std::vector<RankClock>& clocks) const {
    const std::filesystem::path& directory = options_.out;
    const auto add = [&](Timeline& predicted) { add_predictions(predicted, outcomes); };
    const MergedRows rows =
        merge_run_into(directory, directory / "trace.h5", {clocks, environment.dump(), add});
    if (rows.iterations_left_out == 0) return;
    throw Error{fmt::format("{} lacks {} of the iterations (segments of them are damaged on disk). "
                            "Run again with --resume: they are played anew.",
                            (directory / "trace.h5").string(), rows.iterations_left_out),
                ExitCode::run_failed};
  }

  const PipelineInput& input_;
  const PipelineOptions& options_;
};

/// A trace that is read on its own says what was measured, too. Nothing but on rank 0.
nlohmann::json described(nlohmann::json environment, const PipelineOptions& options,
                         const TransportChoice& transport) {
  if (!environment.is_null()) {
    environment["comm"] = options.comm;
    environment["emulate"] = options.emulate;
    environment["trace"] = options.trace;
    environment["transport"] = transport_json(transport);
  }
  return environment;
}

ExitCode run(const PipelineOptions& options, const PipelineSettings& settings) {
  std::optional<Ranks> made{std::in_place, WatchdogOptions{settings.deadline}};
  PipelineInput input = prepare_input(*made, options, settings.planner);
  place_ranks(made, input, settings);
  Ranks& ranks = *made;
  if (options.print_map) {
    print_map(ranks, input.scenario, options.json);
    ranks.host_ranks().mine().phase = Phase::finished;
    return ExitCode::fine;
  }
  if (input.is_complete) {
    const std::string code = on_rank0(
        ranks.world(), [&] { return std::to_string(static_cast<int>(report_complete(options))); });
    ranks.host_ranks().mine().phase = Phase::finished;
    return static_cast<ExitCode>(std::stoi(code));
  }
  input.compute = settings.compute;
  collectively([&] { check_real_input(input); });
  if (options.adaptive) keep_best(input);
  Environment environment{ranks, options.command_line};
  EngineOptions engine = settings.engine;
  engine.run = input.scenario.run;
  const TransportChoice transport =
      take_transport(ranks, settings.transport, settings.compute.device);
  const nlohmann::json before = described(environment.before(), options, transport);
  PipelineOptions kept = options;
  kept.out = traced_directory(options);
  RunDirectory directory{ranks, input, kept, info_of(input, options, before)};
  prepare_write_fault(engine.fault, ranks.self());
  const GpuReport gpus{ranks, settings.compute.device};
  const TimePoint began = now();
  const auto outcomes = with_watchdog(ranks, [&] {
    return run_all(ranks, input, options, engine, adapt_options_of(options, settings),
                   environment.clock(), directory);
  });
  const Duration took = now() - began;
  nlohmann::json after = described(environment.after(), options, transport);
  if (!after.is_null()) after["iterations_ns"] = took.count();
  gpus.add_to(after);
  const ReportWriter writer{input, options};
  const std::string wrong = on_rank0(ranks.world(), [&] {
    writer.write(outcomes, after, directory, environment.rank_clocks());
    std::int64_t sum = 0;
    for (const PipelineMeasurement& m : stretches_of(outcomes)) sum += m.checks.wrong();
    return std::to_string(sum);
  });
  ranks.host_ranks().mine().phase = Phase::finished;
  return wrong == "0" ? ExitCode::fine : ExitCode::answer_is_no;
}

ExitCode main_of(int argc, char** argv) {
  PipelineOptions options;
  CLI::App app{"Runs schedules of a scenario on MPI ranks: predicted against measured."};
  declare(app, options);
  options.command_line = command_line(argc, argv);
  if (const auto code = parse_arguments(app, argc, argv)) return *code;
  PipelineSettings settings;
  collectively([&] { settings = settings_of(options); });
  return run(options, settings);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::bench::run_main(argc, argv,
                                   [&] { return longhaul::bench::main_of(argc, argv); });
}
