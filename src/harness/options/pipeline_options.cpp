#include "harness/options/pipeline_options.hpp"

#include <charconv>

#include "base/error.hpp"
#include "base/program/command_words.hpp"
#include "base/unit_text.hpp"
#include "collective/overlap/overlaps.hpp"
#include "harness/options/credit.hpp"
#include "harness/options/named_as.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "report/planning.hpp"

namespace longhaul::harness {
namespace {

/// Declares the options of scenario, schedules and iterations.
void declare_work(Arguments& arguments, PipelineOptions& options) {
  arguments.option("scenario", options.scenario, "scenario file (TOML)").required();
  arguments
      .option("--schedule", options.schedule,
              "comma list of schedules and .csv files; static, dynamic: all of these; best")
      .shows_default();
  arguments.option("--overlap", options.overlap,
                   "comma list of overlaps: a row for each with every schedule, operators beside "
                   "collectives");
  report::add_planner_options(arguments, options.planner);
  arguments.option("--comm", options.comm, "grouped or decoupled communication").shows_default();
  arguments.option("--iterations", options.iterations, "measured iterations of each schedule")
      .within(1, 1'000'000);
  add_shared_options(arguments, options,
                     {{Shared::confidence,
                       "go on until the 95% interval of a schedule's median is narrower than this: "
                       "5%; --iterations are then the least"}});
  arguments
      .option("--max-iterations", options.max_iterations,
              "the most iterations with --confidence (default: 100)")
      .within(1, 1'000'000);
  arguments.option("--warmup", options.warmup, "iterations before them").within(0, 1'000'000);
  add_shared_options(arguments, options, {{Shared::overrides}});
  arguments
      .option("--change", options.changes,
              "ITERATION:PATH=VALUE: links or node interfaces change there; repeatable")
      .one_value_each();
  arguments.flag("--adaptive", options.adaptive,
                 "select the best of --schedule, and anew when the ranks measure other links");
  arguments
      .option("--switch-threshold", options.switch_threshold_percent,
              "deviation of a link or block, in percent, that calls for another selection")
      .shows_default();
}

/// Declares the options of a datacenter that leaves.
void declare_leave(Arguments& arguments, PipelineOptions& options) {
  arguments.option(
      "--leave", options.leave,
      "SITE@ITERATION: a datacenter's ranks stop there, and the others go on by --rest");
  arguments.option("--rest", options.rest,
                   "scenario of the ranks that stay, as of longhaul advise --without SITE");
  arguments.option("--rest-schedule", options.rest_schedule,
                   "its schedule or .csv file (default: --schedule)");
  arguments
      .option("--rest-set", options.rest_overrides,
              "PATH=VALUE of its scenario, instead of all of --set (default: these); repeatable")
      .one_value_each();
  arguments.option("--rest-overlap", options.rest_overlap,
                   "its overlap, or none (default: --overlap)");
}

/// Declares the options of outputs, and of how ranks play the run.
void declare_run(Arguments& arguments, PipelineOptions& options) {
  add_shared_options(arguments, options,
                     {{Shared::out, "directory for trace.h5, record.json and report.html"}});
  arguments.option("--trace", options.trace, "on, or off: --out gets record.json alone")
      .shows_default();
  arguments.flag("--no-report", options.no_report, "no report.html in --out");
  arguments.flag("--resume", options.resume,
                 "go on in --out behind the last finished iteration of each schedule");
  add_compute_options(arguments, options.compute);
  arguments.option(
      "--payload", options.payload,
      "cap on the bytes really sent for a message (default: 64KiB; --emulate off sends "
      "all)");
  arguments.option("--emulate", options.emulate, "on, or off: the network as it is")
      .shows_default();
  add_shared_options(arguments, options,
                     {{Shared::transport, transport_help()},
                      {Shared::deadline, "end a run in which a rank hangs for so long"},
                      {Shared::ranks}});
  arguments.option("--credit", options.credit, kCreditHelp).shows_default();
  arguments.option("--max-difference", options.max_difference,
                   "exit with 1 where a median is further from its prediction: 2%");
  arguments.flag("--print-map", options.print_map,
                 "print which rank is where (host, stage, device, cores), and run nothing");
  add_shared_options(arguments, options,
                     {{Shared::json, "print the record instead of tables"}, {Shared::wide}});
  arguments.option("--fault", options.fault).group("");  // for tests
}

/// "2%" is 2.
double max_difference_of(const std::string& text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, percent);
  if (error == std::errc{} && rest + 1 == end && *rest == '%' && percent > 0) return percent;
  fail(
      "--max-difference {} is no difference (the most that a median may be off its prediction, "
      "above 0%). Write --max-difference 2%.",
      text);
}

/// Operators and collectives of an iteration are planned once, and timed.
void check_overlaps(const PipelineOptions& options) {
  (void)collective::parse_overlaps(options.overlap);
  const auto refuse = [](const char* option, const char* why) {
    fail("{} and --overlap are both given ({}). Leave one out.", option, why);
  };
  if (options.adaptive) refuse("--adaptive", "it selects and plans among schedules of blocks");
  if (!options.changes.empty()) refuse("--change", "iterations under an overlap keep their links");
  if (options.planner.robust) refuse("--robust", "it selects by times of blocks under jitter");
}

/// A run in two parts is of timed blocks, one schedule each, from the first iteration on.
void check_leave(const PipelineOptions& options) {
  if (options.leave.empty() && options.rest.empty() && options.rest_schedule.empty() &&
      options.rest_overrides.empty() && options.rest_overlap.empty())
    return;
  if (options.leave.empty() || options.rest.empty())
    fail(
        "--leave and --rest belong together (who leaves, and what the others go on with). Give "
        "both.");
  const auto refuse = [](bool given, const char* option, const char* why) {
    if (given) fail("{} and --leave are both given ({}). Leave one out.", option, why);
  };
  if (!options.rest_overlap.empty() && options.rest_overlap != kNoOverlap)
    (void)named_as("--overlap", "--rest-overlap",
                   [&] { return collective::parse_overlaps(options.rest_overlap); });
  refuse(options.adaptive, "--adaptive", "it selects among schedules of all ranks");
  refuse(!options.changes.empty(), "--change", "its iterations are of one scenario");
  refuse(!options.confidence.empty(), "--confidence", "the first part has a fixed number");
  refuse(options.resume, "--resume", "which part was cut short is not kept");
  refuse(options.print_map, "--print-map", "nothing would leave");
  refuse(options.json, "--json", "each part has a record of its own: --out keeps both");
  refuse(options.compute.compute == "real", "--compute real",
         "weights of the site would be gone with it, and no checkpoint is kept here");
}

}  // namespace

void declare(Arguments& arguments, PipelineOptions& options) {
  declare_work(arguments, options);
  declare_leave(arguments, options);
  declare_run(arguments, options);
  arguments.footer(
      help_footer({"scripts/mpi -n 8 build/bin/bench_pipeline benchmarks/scenarios/m70-2dc.toml "
                   "--schedule 1f1b,best --iterations 5 --out runs/first",
                   "scripts/mpi -n 8 build/bin/bench_pipeline benchmarks/scenarios/m70-2dc.toml "
                   "--schedule 1f1b,best --iterations 5 --out runs/first --resume"}));
}

Duration deadline_of(const std::string& text) {
  const Duration deadline = value_of("--deadline", [&] { return parse_duration(text); });
  if (deadline <= Duration::zero())
    fail("--deadline {} is not positive (nobody could ever wait). Give 10s.", text);
  return deadline;
}

Bytes payload_of(const std::string& text) {
  const Bytes payload = value_of("--payload", [&] { return parse_bytes(text); });
  if (payload > Bytes{1 << 30})
    fail("--payload {} is more than a message can hold (1 GiB). Give 64KiB.", text);
  return payload;
}

engine::Emulation emulation_of(const std::string& text) {
  if (text != "on" && text != "off")
    fail("--emulate {} is neither on nor off. Write --emulate on.", text);
  return text == "on" ? engine::Emulation::on : engine::Emulation::off;
}

PipelineSettings settings_of(const PipelineOptions& options) {
  if (!options.overlap.empty()) check_overlaps(options);
  check_leave(options);
  PipelineSettings settings;
  settings.arrangement = report::arrangement_of(options.comm);
  settings.planner = report::planner_options_of(options.planner, settings.arrangement);
  settings.deadline = deadline_of(options.deadline);
  if (!options.payload.empty()) settings.payload = payload_of(options.payload);
  settings.engine.credit = credit_of(options.credit);
  if (!options.max_difference.empty())
    settings.max_difference_percent = max_difference_of(options.max_difference);
  if (settings.max_difference_percent && options.emulate == "off")
    fail("--max-difference needs --emulate on (predictions are of links that are not played).");
  settings.transport = comm::transport_kind_of(options.transport);
  settings.engine.emulation = emulation_of(options.emulate);
  if (settings.engine.emulation == engine::Emulation::off && !options.changes.empty())
    fail("--change needs --emulate on (a network as it is changes by itself). Leave one out.");
  if (!(options.switch_threshold_percent > 0))
    fail("--switch-threshold {} is not positive (every iteration deviates by something). Give 10.",
         options.switch_threshold_percent);
  if (options.trace != "on" && options.trace != "off")
    fail("--trace {} is neither on nor off. Write --trace on.", options.trace);
  if (options.resume && options.trace == "off")
    fail("--resume needs --trace on (it goes on behind the last iteration that was traced).");
  if (options.resume && options.out.empty())
    fail("--resume needs --out (it goes on with the run of a directory). Name it.");
  if (options.resume && (options.adaptive || !options.changes.empty()))
    fail(
        "--resume cannot go on with {} (what was believed of the links is not kept). Begin anew in "
        "another directory.",
        options.adaptive ? "--adaptive" : "--change");
  if (!options.confidence.empty() && (options.adaptive || !options.changes.empty()))
    fail(
        "--confidence does not go with {} (iterations on other links or in another order are no "
        "sample of one time). Give --iterations.",
        options.adaptive ? "--adaptive" : "--change");
  settings.compute = compute_settings_of(options.compute);
  settings.engine.marks = settings.compute.device == DeviceKind::cuda;
  if (options.resume && settings.compute.real)
    fail(
        "--resume cannot go on with --compute real (weights are not kept when a run ends). Begin "
        "anew in another directory.");
  if (!options.fault.empty()) settings.engine.fault = engine::parse_fault(options.fault);
  if (settings.engine.fault && engine::is_of_real_layers(*settings.engine.fault) &&
      !settings.compute.real)
    fail("--fault {} needs --compute real (timed blocks have no weights).", options.fault);
  if (settings.engine.fault && options.overlap.empty() &&
      engine::is_of_operators(*settings.engine.fault))
    fail("--fault {} needs --overlap (it hurts a message of its collectives).", options.fault);
  return settings;
}

}  // namespace longhaul::harness
