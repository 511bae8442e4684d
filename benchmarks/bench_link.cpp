// Is the emulated link true? CrossPipe appendix F.2 (figure 17): ping-pong for latency, messages
// back to back for bandwidth, against targets of 0.5 to 100 ms.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/progress.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/options/record_files.hpp"
#include "harness/options/stopping.hpp"
#include "harness/profile/link_measurement.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"
#include "harness/ranks/transport_choice.hpp"
#include "trace/report/report.hpp"

namespace longhaul::bench {
namespace {

struct Options {
  std::string targets = "0.5ms,1ms,2ms,5ms,10ms,20ms,50ms,100ms";
  int samples = 20;
  std::string confidence;          ///< "1%"; empty: one round of `samples`
  std::optional<int> max_samples;  ///< with `confidence` alone
  std::string payload = "4KiB";
  std::string size = "64MiB";
  std::string device = "cpu", transport = "auto";
  std::string deadline = "10s";
  int ranks_per_process = 1;
  std::filesystem::path out;
  bool check = false;
  bool json = false;
};

std::vector<Duration> parse_targets(const std::string& list) {
  std::vector<Duration> targets;
  std::stringstream in{list};
  for (std::string item; std::getline(in, item, ',');) {
    targets.push_back(parse_duration(item));
    if (targets.back() <= Duration::zero())
      fail("target {} is not positive (there is no error relative to it). Give 0.5ms, 1ms, ...",
           item);
  }
  if (targets.empty()) fail("no targets given. Write --targets 1ms,10ms.");
  return targets;
}

std::string table_of(const std::vector<LinkMeasurement>& measurements) {
  Table table{{{"test", Align::left},
               {"target"},
               {"n"},
               {"median"},
               {"p95"},
               {"median error %"},
               {"p95 error %"}}};
  for (const LinkMeasurement& m : measurements) {
    const SampleSummary times = summarize({m.samples_ns.begin(), m.samples_ns.end()});
    const auto text = [](double ns) { return to_text(Duration{static_cast<std::int64_t>(ns)}); };
    table.add_row({to_string(m.test), to_text(m.target), std::to_string(times.n),
                   text(times.median), text(times.p95),
                   fmt::format("{:+.2f}", m.error_percent.median),
                   fmt::format("{:+.2f}", m.error_percent.p95)});
  }
  return table.text();
}

nlohmann::ordered_json stopped_of(const LinkMeasurement& m, const StoppingRule& rule) {
  return stopped_json(rule, std::vector<double>{m.samples_ns.begin(), m.samples_ns.end()});
}

nlohmann::ordered_json record_of(const std::vector<LinkMeasurement>& measurements,
                                 const StoppingRule& rule, const Options& options,
                                 const std::string& command, const nlohmann::json& environment,
                                 const Checks& checks) {
  nlohmann::ordered_json record;
  record["schema_version"] = 1;
  record["benchmark"] = "bench_link";
  record["numbers"] = "measured";
  record["git_commit"] = git_commit();
  record["command_line"] = command;
  record["payload_bytes"] = parse_bytes(options.payload).count();
  record["stopping"] = rule_json(rule);
  record["check"] = checks.wrong() == 0 ? "ok" : "wrong";
  record["environment"] = environment;
  for (const LinkMeasurement& m : measurements) {
    record["measurements"].push_back({{"test", to_string(m.test)},
                                      {"target_ns", m.target.count()},
                                      {"n", m.samples_ns.size()},
                                      {"stopped", stopped_of(m, rule)},
                                      {"error_median_percent", m.error_percent.median},
                                      {"error_p95_percent", m.error_percent.p95},
                                      {"samples_ns", m.samples_ns}});
  }
  return record;
}

std::string csv_of(const std::vector<LinkMeasurement>& measurements) {
  std::string text = "test,target_ns,sample_ns,error_percent\n";
  for (const LinkMeasurement& m : measurements)
    for (const std::int64_t sample : m.samples_ns)
      text += fmt::format("{},{},{},{:.4f}\n", to_string(m.test), m.target.count(), sample,
                          error_percent(sample, m.target));
  return text;
}

/// A link cannot be faster than its target, all messages of a run together, and loses none.
ExitCode verdict(const std::vector<LinkMeasurement>& measurements, const Checks& checks,
                 const Options& options) {
  if (checks.wrong() > 0) return ExitCode::answer_is_no;
  if (!options.check) return ExitCode::fine;
  const bool too_fast = std::ranges::any_of(measurements, [](const LinkMeasurement& m) {
    return static_cast<double>(m.least_mean.count()) < 0.98 * static_cast<double>(m.target.count());
  });
  return too_fast ? ExitCode::answer_is_no : ExitCode::fine;
}

/// Samples are those of all pairs of ranks together.
StoppingRule rule_of(const Options& options, int pairs) {
  return stopping_rule(options.confidence, options.max_samples, options.samples * pairs, "samples");
}

/// Round by round, until the median of the samples is known as well as asked.
LinkMeasurement measure_until(const StoppingRule& rule, LinkTest test, Duration target,
                              Ranks& ranks, const LinkSettings& settings, Checks& checks) {
  LinkMeasurement all = measure_link(test, target, ranks, settings, checks);
  const auto times = [&] {
    return std::vector<double>{all.samples_ns.begin(), all.samples_ns.end()};
  };
  const int pairs = ranks.count() / 2;
  int done = settings.samples * pairs;
  while (goes_on(rule, done, times(), ranks.world())) {
    LinkSettings round_of = settings;
    round_of.samples = std::min(settings.samples, (rule.most - done) / pairs);
    if (round_of.samples < 1) break;  // less than a sample of every pair is left
    const LinkMeasurement round = measure_link(test, target, ranks, round_of, checks);
    all.least_mean = std::min(all.least_mean, round.least_mean);
    all.samples_ns.insert(all.samples_ns.end(), round.samples_ns.begin(), round.samples_ns.end());
    done += round_of.samples * pairs;
  }
  if (!all.samples_ns.empty()) all.error_percent = summarize(errors_percent(all));
  return all;
}

ExitCode run(int argc, char** argv, const Options& options, const std::vector<Duration>& targets) {
  Ranks ranks{{parse_duration(options.deadline)}};
  on_rank0(ranks.world(), [&] {
    if (ranks.count() < 2 || ranks.count() % 2 != 0)
      fail("bench_link runs on pairs of ranks, not on {}. Start it with scripts/mpi -n 2 ...",
           ranks.count());
    if (!options.out.empty()) require_free(options.out);
    return std::string{};
  });
  Environment environment{ranks, command_line(argc, argv)};
  std::vector<LinkMeasurement> measurements;
  Checks checks;
  LinkSettings settings{options.samples, parse_bytes(options.size), parse_bytes(options.payload),
                        device_kind_of(options.device)};
  const TransportChoice transport =
      take_transport(ranks, transport_kind_of(options.transport), settings.device);
  if (settings.device == DeviceKind::cuda)
    settings.baseline = measure_baseline(ranks, settings, checks);
  StoppingRule rule;
  collectively([&] { rule = rule_of(options, ranks.count() / 2); });
  Progress progress{"bench_link", static_cast<std::int64_t>(2 * targets.size())};
  for (const LinkTest test : {LinkTest::latency, LinkTest::bandwidth}) {
    for (const Duration target : targets) {
      measurements.push_back(measure_until(rule, test, target, ranks, settings, checks));
      if (ranks.is_first()) progress.update(std::ssize(measurements), to_text(target));
    }
  }
  checks.corrupted = ranks.world().sum(checks.wrong());
  const nlohmann::json after = environment.after();
  const std::string code = on_rank0(ranks.world(), [&] {
    auto record = record_of(measurements, rule, options, command_line(argc, argv), after, checks);
    record["device"] = options.device;
    record["environment"]["transport"] = transport_json(transport);
    record["baseline_ns"] = settings.baseline.count();
    if (options.json) {
      fmt::print("{}\n", record.dump(2));
    } else {
      fmt::print("{}", table_of(measurements));
    }
    if (!options.out.empty()) {
      write_new_file(options.out / "link.csv", csv_of(measurements));
      write_new_file(options.out / "record.json", record.dump(2) + "\n");
    }
    return std::to_string(static_cast<int>(verdict(measurements, checks, options)));
  });
  return static_cast<ExitCode>(code.front() - '0');
}

ExitCode main_of(int argc, char** argv) {
  Options options;
  CLI::App app{"Validates link emulation: error of latency and bandwidth against their targets."};
  app.add_option("--targets", options.targets, "delays to emulate, a comma list")
      ->capture_default_str();
  app.add_option("--samples", options.samples, "samples of each target and pair of ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--confidence", options.confidence,
                 "go on until the 95% interval of each median is narrower than this: 1%");
  app.add_option("--max-samples", options.max_samples,
                 "the most samples of a target with --confidence, of all pairs together")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--size", options.size, "nominal size of a message")->capture_default_str();
  app.add_option("--payload", options.payload, "cap on the bytes really sent")
      ->capture_default_str();
  app.add_option("--device", options.device,
                 "cpu, or cuda: payloads in a GPU's memory, delays played there")
      ->capture_default_str();
  add_transport_option(app, options.transport);
  app.add_option("--deadline", options.deadline, "end a run that hangs for so long")
      ->capture_default_str();
  add_ranks_per_process(app, options.ranks_per_process);
  app.add_option("--out", options.out, "directory for record.json and link.csv");
  app.add_flag("--json", options.json, "print the record instead of a table");
  app.add_flag("--check", options.check, "tiny: two targets, and the answer is the exit code");
  if (const auto code = parse_arguments(app, argc, argv)) return *code;
  std::vector<Duration> targets;
  collectively([&] {
    if (options.check) {
      options.samples = 5;
      options.targets = "2ms,5ms";
    }
    targets = parse_targets(options.targets);
    (void)parse_bytes(options.size);
    (void)payload_of(options.payload);
    (void)deadline_of(options.deadline);
    (void)device_kind_of(options.device);
    (void)transport_kind_of(options.transport);
    (void)rule_of(options, 1);
  });
  return run(argc, argv, options, targets);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::bench::run_main(argc, argv,
                                   [&] { return longhaul::bench::main_of(argc, argv); });
}
