// Is the emulated link true? CrossPipe appendix F.2 (figure 17): ping-pong for latency, messages
// back to back for bandwidth, against targets of 0.5 to 100 ms.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/program/program.hpp"
#include "base/unit_text.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/options/credit.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/options/run_files.hpp"
#include "harness/profile/link_measurement.hpp"
#include "harness/profile/link_sharing.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"

namespace longhaul::bench {
namespace {

struct Options : harness::SharedOptions {
  std::string targets = "0.5ms,1ms,2ms,5ms,10ms,20ms,50ms,100ms";
  int samples = 20;
  std::optional<int> max_samples;  ///< with `confidence` alone
  std::string payload = "4KiB";
  std::string size = "64MiB";
  std::string credit = "1ms";
};

ExitCode verdict(const std::vector<harness::LinkMeasurement>& measurements,
                 const engine::Checks& checks, const Options& options) {
  const bool too_fast = options.check && std::ranges::any_of(measurements, harness::is_too_fast);
  return too_fast || checks.wrong() > 0 ? ExitCode::answer_is_no : ExitCode::fine;
}

/// Samples are those of all pairs of ranks together.
harness::StoppingRule rule_of(const Options& options, int pairs) {
  return harness::stopping_rule(options.confidence, options.max_samples, options.samples * pairs,
                                "samples");
}

ExitCode run(int argc, char** argv, const Options& options, const std::vector<Duration>& targets,
             harness::LinkSettings settings) {
  engine::Ranks ranks{{parse_duration(options.deadline)}};
  harness::on_rank0(ranks.world(), [&] {
    harness::require_pairs(ranks);
    if (!options.out.empty()) harness::require_free(options.out);
    return std::string{};
  });
  harness::Environment environment{ranks, harness::command_line(argc, argv)};
  if (!ranks.host_ranks().all_local()) settings.clock_offset = environment.clock().offset;
  std::vector<harness::LinkMeasurement> measurements;
  engine::Checks checks;
  const comm::TransportChoice transport =
      harness::take_transport(ranks, comm::transport_kind_of(options.transport), settings.device);
  if (settings.device == harness::DeviceKind::cuda)
    settings.baseline = harness::measure_baseline(ranks, settings, checks);
  harness::StoppingRule rule;
  harness::collectively([&] { rule = rule_of(options, ranks.count() / 2); });
  const Duration floor = harness::measure_baseline(ranks, settings, checks);
  measurements = harness::measure_targets(rule, targets, ranks, settings, checks,
                                          [&] { environment.watch_load(); });
  const auto sharing = harness::measure_sharing(targets, ranks, settings, checks);
  checks.corrupted = ranks.world().sum(checks.wrong());
  const nlohmann::json after = environment.after();
  const std::string code = harness::on_rank0(ranks.world(), [&] {
    auto record = harness::link_record({harness::command_line(argc, argv), settings, rule},
                                       measurements, after, checks);
    record["device"] = options.device;
    record["environment"]["transport"] = harness::transport_json(transport);
    record["baseline_ns"] = settings.baseline.count();
    record["floor_ns"] = floor.count();
    record["together"] = harness::sharing_json(sharing);
    if (options.json) {
      fmt::print("{}\n", record.dump(2));
    } else {
      fmt::print("{}{}", harness::link_table(measurements, settings),
                 harness::sharing_table(sharing, floor, settings));
    }
    if (!options.out.empty()) {
      harness::write_new_file(options.out / "link.csv", harness::link_csv(measurements));
      harness::write_new_file(options.out / "record.json", record.dump(2) + "\n");
    }
    return std::to_string(static_cast<int>(verdict(measurements, checks, options)));
  });
  return static_cast<ExitCode>(code.front() - '0');
}

void declare(Arguments& arguments, Options& options) {
  arguments.option("--targets", options.targets, "delays to emulate, a comma list").shows_default();
  arguments.option("--samples", options.samples, "samples of each target and pair of ranks")
      .shows_default()
      .within(1, 1'000'000);
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::confidence,
        "go on until the 95% interval of each median is narrower than this: 1%"}});
  arguments
      .option("--max-samples", options.max_samples,
              "the most samples of a target with --confidence, of all pairs together")
      .within(1, 1'000'000);
  arguments.option("--size", options.size, "nominal size of a message").shows_default();
  arguments.option("--payload", options.payload, "cap on the bytes really sent").shows_default();
  arguments.option("--credit", options.credit, harness::kCreditHelp).shows_default();
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::device, "cpu, or cuda: payloads in a GPU's memory, delays played there"},
       {harness::Shared::transport, harness::transport_help()},
       {harness::Shared::deadline},
       {harness::Shared::ranks},
       {harness::Shared::out, "directory for record.json and link.csv"},
       {harness::Shared::json},
       {harness::Shared::check, "tiny: two targets, and the answer is the exit code"}});
}

ExitCode main_of(int argc, char** argv) {
  Options options;
  Arguments arguments{
      "Validates link emulation: error of latency and bandwidth against their targets."};
  declare(arguments, options);
  arguments.footer(harness::help_footer({"scripts/mpi -n 2 build/bin/bench_link --targets 2ms,5ms",
                                         "scripts/mpi -n 2 build/bin/bench_link --check"}));
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  std::vector<Duration> targets;
  harness::LinkSettings settings;
  harness::collectively([&] {
    if (options.check) {
      options.samples = 5;
      options.targets = "2ms,5ms";
    }
    targets = harness::parse_targets(options.targets);
    settings = {options.samples, parse_bytes(options.size), harness::payload_of(options.payload),
                harness::device_kind_of(options.device), harness::credit_of(options.credit)};
    (void)harness::deadline_of(options.deadline);
    (void)comm::transport_kind_of(options.transport);
    (void)rule_of(options, 1);
  });
  return run(argc, argv, options, targets, settings);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
