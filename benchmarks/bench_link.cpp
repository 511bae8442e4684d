// Is the emulated link true? CrossPipe appendix F.2 (figure 17): ping-pong for latency, messages
// back to back for bandwidth, against targets of 0.5 to 100 ms.
#include <filesystem>
#include <fstream>

#include <CLI/CLI.hpp>

#include "base/progress.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "runtime/device/cpu/timed_device.hpp"
#include "runtime/engine/engine.hpp"
#include "support/environment.hpp"
#include "support/main.hpp"
#include "support/plan_builder.hpp"
#include "support/record_files.hpp"
#include "trace/report.hpp"

namespace longhaul::bench {
namespace {

enum class Test { latency, bandwidth };
const char* name_of(Test test) { return test == Test::latency ? "latency" : "bandwidth"; }

struct Options {
  std::string targets = "0.5ms,1ms,2ms,5ms,10ms,20ms,50ms,100ms";
  int samples = 20;
  std::string payload = "4KiB";
  std::string size = "64MiB";
  std::string deadline = "10s";
  std::filesystem::path out;
  bool check = false;
  bool json = false;
};

struct Measurement {
  Test test{};
  Duration target{};
  std::vector<std::int64_t> samples_ns;  ///< of all pairs of ranks
  SampleSummary error_percent;
};

/// Rounds of ping-pong between `a` and `b`; the first is a warm-up.
void add_ping_pong(PlanBuilder& builder, int a, int b, Duration latency, int rounds, Bytes size) {
  std::optional<PlanBuilder::Handle> last;
  for (int i = 0; i <= rounds; ++i) {
    const auto ping = builder.message(a, b, Duration::zero(), latency, size);
    const auto pong = builder.message(b, a, Duration::zero(), latency, size);
    if (last) builder.after(ping.send, *last);
    builder.after(pong.send, ping.recv);
    last = pong.recv;
  }
}

/// One pair of ranks k and k + ranks/2 each, all at the same time.
Plan make_plan(Test test, Duration target, int ranks, int samples, Bytes size) {
  PlanBuilder builder{fmt::format("{} {}", name_of(test), to_text(target)), ranks};
  for (int a = 0; a < ranks / 2; ++a) {
    const int b = a + ranks / 2;
    if (test == Test::latency) {
      add_ping_pong(builder, a, b, target, samples, size);
    } else {
      for (int i = 0; i <= samples + 1; ++i) builder.message(a, b, target, Duration::zero(), size);
    }
  }
  return builder.build();
}

/// What this rank can tell: half the time from one pong to the next, or the time from one message
/// to the next. Without the first, which starts the chain.
std::vector<std::int64_t> samples_of(Test test, const Plan& plan, Rank self, const OpTimes& times) {
  const bool asks = index(self) < plan.ranks.size() / 2;
  std::vector<std::int64_t> samples;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != self || lane.kind != LaneKind::recv) continue;
    if ((test == Test::latency) != asks) continue;
    for (std::uint32_t i = test == Test::latency ? 1 : 2; i < lane.count; ++i) {
      const std::size_t at = index(lane.first) + i;
      const Duration gap = times[at].end - times[at - 1].end;
      samples.push_back(test == Test::latency ? gap.count() / 2 : gap.count());
    }
  }
  return samples;
}

Measurement measure(Test test, Duration target, Ranks& ranks, const Options& options,
                    Checks& checks) {
  const Plan plan =
      make_plan(test, target, ranks.count(), options.samples, parse_bytes(options.size));
  EngineOptions engine_options;
  engine_options.payload = parse_bytes(options.payload);
  TimedDevice device;
  ranks.watchdog().watch(&plan, (2 * options.samples + 4) * target);
  Engine engine{plan, ranks, device, engine_options};
  const IterationResult result = engine.run(0);
  ranks.watchdog().watch(nullptr, {});
  checks += result.checks;

  const auto mine = samples_of(test, plan, ranks.self(), result.times);
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(std::span{mine}), counts);
  Measurement measurement{test, target, std::vector<std::int64_t>(bytes.size() / 8), {}};
  std::memcpy(measurement.samples_ns.data(), bytes.data(), bytes.size());
  std::vector<double> errors;
  for (const std::int64_t sample : measurement.samples_ns)
    errors.push_back(100.0 *
                     (static_cast<double>(sample) / static_cast<double>(target.count()) - 1.0));
  if (!errors.empty()) measurement.error_percent = summarize(errors);
  return measurement;
}

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

std::string table_of(const std::vector<Measurement>& measurements) {
  Table table{{{"test", Align::left},
               {"target"},
               {"n"},
               {"median"},
               {"p95"},
               {"median error %"},
               {"p95 error %"}}};
  for (const Measurement& m : measurements) {
    const SampleSummary times = summarize({m.samples_ns.begin(), m.samples_ns.end()});
    const auto text = [](double ns) { return to_text(Duration{static_cast<std::int64_t>(ns)}); };
    table.add_row({name_of(m.test), to_text(m.target), std::to_string(times.n), text(times.median),
                   text(times.p95), fmt::format("{:+.2f}", m.error_percent.median),
                   fmt::format("{:+.2f}", m.error_percent.p95)});
  }
  return table.text();
}

nlohmann::ordered_json record_of(const std::vector<Measurement>& measurements,
                                 const Options& options, const std::string& command,
                                 const nlohmann::json& environment, const Checks& checks) {
  nlohmann::ordered_json record;
  record["schema_version"] = 1;
  record["benchmark"] = "bench_link";
  record["numbers"] = "measured";
  record["git_commit"] = git_commit();
  record["command_line"] = command;
  record["payload_bytes"] = parse_bytes(options.payload).count();
  record["check"] = checks.wrong() == 0 ? "ok" : "wrong";
  record["environment"] = environment;
  for (const Measurement& m : measurements) {
    record["measurements"].push_back({{"test", name_of(m.test)},
                                      {"target_ns", m.target.count()},
                                      {"n", m.samples_ns.size()},
                                      {"error_median_percent", m.error_percent.median},
                                      {"error_p95_percent", m.error_percent.p95},
                                      {"samples_ns", m.samples_ns}});
  }
  return record;
}

std::string csv_of(const std::vector<Measurement>& measurements) {
  std::string text = "test,target_ns,sample_ns,error_percent\n";
  for (const Measurement& m : measurements)
    for (const std::int64_t sample : m.samples_ns)
      text += fmt::format(
          "{},{},{},{:.4f}\n", name_of(m.test), m.target.count(), sample,
          100.0 * (static_cast<double>(sample) / static_cast<double>(m.target.count()) - 1.0));
  return text;
}

/// A link cannot be faster than its target: samples on average, and no message lost.
ExitCode verdict(const std::vector<Measurement>& measurements, const Checks& checks,
                 const Options& options) {
  if (checks.wrong() > 0) return ExitCode::answer_is_no;
  if (!options.check) return ExitCode::fine;
  for (const Measurement& m : measurements) {
    const double total = std::accumulate(m.samples_ns.begin(), m.samples_ns.end(), 0.0);
    const double mean = total / static_cast<double>(m.samples_ns.size());
    if (mean < 0.98 * static_cast<double>(m.target.count())) return ExitCode::answer_is_no;
  }
  return ExitCode::fine;
}

ExitCode run(int argc, char** argv, const Options& options, const std::vector<Duration>& targets) {
  Ranks ranks{{parse_duration(options.deadline)}};
  on_first(ranks.world(), [&] {
    if (ranks.count() < 2 || ranks.count() % 2 != 0)
      fail("bench_link runs on pairs of ranks, not on {}. Start it with scripts/mpi -n 2 ...",
           ranks.count());
    if (!options.out.empty()) require_free(options.out);
    return std::string{};
  });
  Environment environment{ranks};
  std::vector<Measurement> measurements;
  Checks checks;
  Progress progress{"bench_link", static_cast<std::int64_t>(2 * targets.size())};
  for (const Test test : {Test::latency, Test::bandwidth}) {
    for (const Duration target : targets) {
      measurements.push_back(measure(test, target, ranks, options, checks));
      if (ranks.is_first()) progress.update(std::ssize(measurements), to_text(target));
    }
  }
  checks.corrupted = ranks.world().sum(checks.wrong());
  const nlohmann::json after = environment.after();
  const std::string code = on_first(ranks.world(), [&] {
    const auto record = record_of(measurements, options, command_line(argc, argv), after, checks);
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
  app.add_option("--size", options.size, "nominal size of a message")->capture_default_str();
  app.add_option("--payload", options.payload, "cap on the bytes really sent")
      ->capture_default_str();
  app.add_option("--deadline", options.deadline, "end a run that hangs for so long")
      ->capture_default_str();
  app.add_option("--out", options.out, "directory for record.json and link.csv");
  app.add_flag("--json", options.json, "print the record instead of a table");
  app.add_flag("--check", options.check, "tiny: two targets, and the answer is the exit code");
  if (const auto code = parse_arguments(app, argc, argv)) return *code;
  std::vector<Duration> targets;
  agreed([&] {
    if (options.check) {
      options.samples = 5;
      options.targets = "2ms,5ms";
    }
    targets = parse_targets(options.targets);
    (void)parse_bytes(options.size);
    (void)parse_bytes(options.payload);
    (void)parse_duration(options.deadline);
  });
  return run(argc, argv, options, targets);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::bench::run_main(argc, argv,
                                   [&] { return longhaul::bench::main_of(argc, argv); });
}
