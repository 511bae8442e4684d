// Do streams of ranks take the predicted time? Replicas in two sites exchange their parts over one
// link each way, whose rate is varied, and wait for exchanges of the iteration before or of the one
// before that.
#include <algorithm>
#include <cmath>

#include "base/program/program.hpp"
#include "base/unit_text.hpp"
#include "harness/environment/shared_options.hpp"
#include "harness/options/credit.hpp"
#include "harness/profile/stream_measurement.hpp"
#include "harness/ranks/main.hpp"

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
  std::string fault;
};

ExitCode run(const Options& options, const std::vector<Bandwidth>& rates,
             const harness::StreamSettings& settings) {
  engine::Ranks ranks{{parse_duration(options.deadline)}};
  harness::on_rank0(ranks.world(), [&] {
    if (ranks.count() % 2 != 0)
      fail("there are {} ranks (each has a partner in the other site). Start an even number.",
           ranks.count());
    return std::string{};
  });
  std::vector<harness::StreamMeasurement> measurements;
  engine::Checks checks;
  for (const int stale : {0, 1})
    for (const Bandwidth rate : rates)
      measurements.push_back(harness::measure_stream(rate, stale, ranks, settings, checks));
  const harness::PublishingCost cost = harness::measure_publishing(ranks);
  const std::int64_t wrong = ranks.world().sum(checks.wrong());
  if (ranks.is_first())
    fmt::print(
        "{}{} ranks, {} iterations each, {} wrong. An op told to others of the host: {:.0f} ns to "
        "publish, {:.0f} ns to read\n",
        harness::stream_table(measurements), ranks.count(), options.iterations, wrong,
        cost.publish_ns, cost.read_ns);
  const bool far_off = std::ranges::any_of(measurements, [&](const auto& each) {
    return 100 * std::abs(each.difference()) > options.most;
  });
  return wrong > 0 || far_off ? ExitCode::answer_is_no : ExitCode::fine;
}

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
  arguments.option("--fault", options.fault, "for tests: kill@RANK:OPINDEX:ITERATION, freeze@");
  harness::add_shared_options(
      arguments, options,
      {{harness::Shared::deadline},
       {harness::Shared::ranks},
       {harness::Shared::check, "tiny: two rates, and the answer is the exit code"}});
}

ExitCode main_of(int argc, char** argv) {
  Options options;
  Arguments arguments{"Validates streams: the time between their iterations against simulation."};
  declare(arguments, options);
  arguments.footer(harness::help_footer({"scripts/mpi -n 4 build/bin/bench_stream",
                                         "scripts/mpi -n 4 build/bin/bench_stream --check"}));
  if (const auto code = harness::parse_arguments(arguments, argc, argv)) return *code;
  std::vector<Bandwidth> rates;
  harness::StreamSettings settings;
  harness::collectively([&] {
    if (options.check) {
      options.rates = "10Gbps,40Gbps";
      options.iterations = 6;
      options.warmup = 2;
      options.most = 50;  // right, not accurate: tests share their machine
    }
    rates = harness::parse_rates(options.rates);
    settings.forward = parse_duration(options.forward);
    settings.latency = parse_duration(options.latency);
    settings.size = parse_bytes(options.size);
    settings.iterations = options.iterations;
    settings.warmup = options.warmup;
    settings.credit = harness::credit_of(options.credit);
    if (!options.fault.empty()) settings.fault = engine::parse_fault(options.fault);
    if (settings.warmup + 2 > settings.iterations)
      fail("{} of {} iterations are warm-up (two starts are needed after it). Give more.",
           settings.warmup, settings.iterations);
  });
  return run(options, rates, settings);
}

}  // namespace
}  // namespace longhaul::bench

int main(int argc, char** argv) {
  return longhaul::harness::run_main(argc, argv,
                                     [&] { return longhaul::bench::main_of(argc, argv); });
}
