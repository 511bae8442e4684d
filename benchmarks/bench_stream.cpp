// Do streams of ranks take the predicted time? Replicas in two sites exchange their parts over one
// link each way, whose rate is varied, and wait for exchanges of the iteration before or of the one
// before that.
#include <utility>

#include "base/program/program.hpp"
#include "base/unit_text.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/options/credit.hpp"
#include "harness/ranks/main.hpp"
#include "harness/streams/stream_run.hpp"

namespace longhaul::bench {
namespace {

struct Options : harness::SharedOptions {
  std::string rates = "8Gbps,10Gbps,13Gbps,20Gbps,40Gbps";
  std::string size = "25MB";
  std::string forward = "10ms";
  std::string latency = "5ms";
  std::string credit = "1ms";
  int iterations = 30;
  int warmup = 6;
  double most = 3;  ///< percent
  bool extras = false;
  bool resume = false;
  std::string fault;
};

void declare(Arguments& arguments, Options& options) {
  arguments.option("--rates", options.rates, "of the link between the sites, a comma list")
      .shows_default();
  arguments.option("--size", options.size, "nominal size of an exchange, one way").shows_default();
  arguments.option("--forward", options.forward, "F of a part; B takes twice as long")
      .shows_default();
  arguments.option("--latency", options.latency, "between the sites").shows_default();
  arguments.option("--iterations", options.iterations, "of each stream")
      .shows_default()
      .within(3, 1'000'000);
  arguments.option("--warmup", options.warmup, "of these not measured")
      .shows_default()
      .within(0, 1'000'000);
  arguments
      .option("--max-difference", options.most,
              "exit code 1 where a period is further from its prediction, in percent")
      .shows_default();
  arguments.option("--credit", options.credit, harness::kCreditHelp).shows_default();
  arguments.flag("--extras", options.extras,
                 "ranks also have host tasks that may not run, and note versions");
  arguments.option("--fault", options.fault, "for tests: kill@RANK:OPINDEX:ITERATION, freeze@");
  arguments.flag("--resume", options.resume,
                 "go on with the run in --out after the last iteration that all ranks finished");
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::out, "directory for a trace of all iterations"},
       {harness::Shared::deadline},
       {harness::Shared::ranks},
       {harness::Shared::check, "tiny: two rates, and the answer is the exit code"}});
}

harness::StreamRun run_of(Options options) {
  if (options.check) {
    options.rates = "10Gbps,40Gbps";
    options.iterations = 6;
    options.warmup = 2;
    options.most = 50;  // right, not accurate: tests share their machine
  }
  harness::StreamRun run;
  harness::StreamSettings& settings = run.settings;
  settings.forward = parse_duration(options.forward);
  settings.latency = parse_duration(options.latency);
  settings.size = parse_bytes(options.size);
  settings.iterations = options.iterations;
  settings.warmup = options.warmup;
  settings.credit = harness::credit_of(options.credit);
  settings.extras = options.extras;
  if (!options.fault.empty()) settings.fault = engine::parse_fault(options.fault);
  if (settings.warmup + 2 > settings.iterations)
    fail("{} of {} iterations are warm-up (two starts are needed after it). Give more.",
         settings.warmup, settings.iterations);
  if (options.resume && options.out.empty())
    fail("--resume needs --out (it goes on with the run of a directory). Name it.");
  const std::vector<Bandwidth> rates = harness::parse_rates(options.rates);
  for (const int stale : {0, 1})
    for (const Bandwidth rate : rates) run.cases.push_back({rate, stale});
  run.most_percent = options.most;
  run.deadline = parse_duration(options.deadline);
  run.request.out = options.out;
  run.request.resume = options.resume;
  run.request.info.command_line = options.command_line;
  return run;
}

ExitCode main_of(int argc, char** argv) {
  Options options;
  Arguments arguments{"Validates streams: the time between their iterations against simulation."};
  declare(arguments, options);
  options.command_line = harness::command_line(argc, argv);
  arguments.footer(harness::help_footer(
      {"scripts/mpi -n 4 build/bin/bench_stream", "scripts/mpi -n 4 build/bin/bench_stream --check",
       "scripts/mpi -n 4 build/bin/bench_stream --extras --out runs/stream --resume"}));
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  harness::StreamRun run;
  harness::collectively([&] { run = run_of(options); });
  return harness::run_streams(std::move(run));
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
