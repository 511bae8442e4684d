#include "harness/streams/stream_run.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/unit_text.hpp"
#include "base/version.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/ranks/main.hpp"

namespace longhaul::harness {
namespace {

nlohmann::json asked_of_streams(const StreamRun& run, int ranks) {
  nlohmann::json streams = nlohmann::json::array();
  for (const StreamCase& of : run.cases)
    streams.push_back(fmt::format("{}, stale {}", to_text(of.rate), of.stale));
  return {{"ranks", ranks},
          {"--rates", streams},
          {"--size", run.settings.size.count()},
          {"--forward", run.settings.forward.count()},
          {"--latency", run.settings.latency.count()},
          {"--credit", run.settings.credit.count()},
          {"--iterations", run.settings.iterations},
          {"--extras", run.settings.extras}};
}

/// The streams of a run, and what is kept of them.
class Streams {
public:
  Streams(engine::Ranks& ranks, StreamRun& run) : ranks_{ranks}, run_{run} {
    for (const StreamCase& of : run.cases)
      plans_.push_back(plan_of_exchange(ranks.count(), of, run.settings));
    if (run.request.out.empty()) return;
    environment_.emplace(ranks, run.request.info.command_line);
    nlohmann::json before = environment_->before();
    before["lateness_credit_ns"] = run.settings.credit.count();
    run.request.info.environment = before.dump();
    run.request.info.creator = fmt::format("bench_stream {}", version());
    run.request.info.git_commit = git_commit();
    run.request.asked = asked_of_streams(run, ranks.count());
    directory_.emplace(
        ranks, run.request, plans_.size(), [this] { return predicted(); },
        environment_->clock().offset);
  }

  std::vector<StreamMeasurement> measure(engine::Checks& checks) {
    std::vector<StreamMeasurement> measurements;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const int stream = static_cast<int>(i);
      PlannedStream planned{plans_[i], directory_ ? directory_->finished(stream) : 0};
      if (planned.first >= run_.settings.iterations) continue;
      if (directory_)
        planned.keep = [this, stream, i](const engine::IterationResult& result) {
          directory_->keep(stream, plans_[i], result);
        };
      measurements.push_back(with_watchdog(ranks_, [&] {
        return measure_stream(run_.cases[i], planned, ranks_, run_.settings, checks);
      }));
    }
    return measurements;
  }

  void finish() {
    if (!directory_) return;
    nlohmann::json after = environment_->after();
    after["lateness_credit_ns"] = run_.settings.credit.count();
    ranks_.watchdog().set_patience(std::chrono::minutes{10});
    const bool in_parts = std::ranges::any_of(run_.cases, [&, i = 0](const StreamCase&) mutable {
      return directory_->finished(i++) > 0;
    });
    // The drift of clocks is known for this part of the run alone.
    directory_->finish(in_parts ? std::vector<trace::RankClock>{} : environment_->rank_clocks(),
                       after);
  }

private:
  [[nodiscard]] Timeline predicted() const {
    Timeline timeline;
    for (const Plan& plan : plans_) append_predicted(timeline, plan, run_.settings.iterations);
    return timeline;
  }

  engine::Ranks& ranks_;
  StreamRun& run_;
  std::vector<Plan> plans_;
  std::optional<Environment> environment_;
  std::optional<StreamDirectory> directory_;
};

void print_streams(const StreamRun& run, const std::vector<StreamMeasurement>& measurements,
                   int ranks, std::int64_t wrong, const PublishingCost& cost) {
  for (const StreamMeasurement& each : measurements)
    if (each.first > 0)
      fmt::print("{}, stale {}: goes on with iteration {}\n", to_text(each.of.rate), each.of.stale,
                 each.first);
  if (measurements.size() < run.cases.size())
    fmt::print("{} streams were complete before\n", run.cases.size() - measurements.size());
  fmt::print(
      "{}{} ranks, {} iterations each, {} wrong. An op told to others of the host: {:.0f} ns to "
      "publish, {:.0f} ns to read\n",
      stream_table(measurements), ranks, run.settings.iterations, wrong, cost.publish_ns,
      cost.read_ns);
}

}  // namespace

ExitCode run_streams(StreamRun run) {
  engine::Ranks ranks{{run.deadline}};
  const std::string complete = on_rank0(ranks.world(), [&]() -> std::string {
    if (ranks.count() % 2 != 0)
      fail("there are {} ranks (each has a partner in the other site). Start an even number.",
           ranks.count());
    if (!run.request.resume || !is_complete_stream(run.request.out)) return {};
    fmt::print(stderr, "longhaul: {} is complete: nothing is left to run\n",
               run.request.out.string());
    return "yes";
  });
  if (!complete.empty()) return ExitCode::fine;
  Streams streams{ranks, run};
  engine::Checks checks;
  const auto measurements = streams.measure(checks);
  const PublishingCost cost = measure_publishing(ranks);
  const std::int64_t wrong = ranks.world().sum(checks.wrong());
  streams.finish();
  if (ranks.is_first()) print_streams(run, measurements, ranks.count(), wrong, cost);
  const bool far_off = std::ranges::any_of(measurements, [&](const auto& each) {
    return 100 * std::abs(each.difference()) > run.most_percent;
  });
  return wrong > 0 || far_off ? ExitCode::answer_is_no : ExitCode::fine;
}

}  // namespace longhaul::harness
