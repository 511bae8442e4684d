#include "report/stream_report.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/stream_values.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/tune/stream_period.hpp"
#include "report/tables.hpp"
#include "sim/simulate.hpp"

namespace longhaul::report {
namespace {

/// Follows which parts meet fresh weights.
class FreshParts {
public:
  FreshParts(const Plan& plan, const Scenario& scenario) : late_{updates_late(scenario)} {
    std::map<std::pair<ChunkId, int>, int> numbers;
    for (const plan::FarDependency& far : plan.extras.far)
      if (far.strength == plan::Strength::weak)
        numbers[{plan.op(far.op).chunk, plan.op(far.op).part}] = 0;
    for (auto& [part, number] : numbers) number = parts_++;
    for (const plan::FarDependency& far : plan.extras.far)
      if (far.strength == plan::Strength::weak)
        uses_.push_back({far.op, numbers.at({plan.op(far.op).chunk, plan.op(far.op).part})});
    always_.assign(to_size(parts_), true);
  }

  void add(const sim::StreamedIteration& done) {
    for (const auto& [op, part] : uses_) {
      const bool fresh = done.results.versions[index(op)] - late_ >= done.iteration - 1;
      ++seen_;
      if (fresh) ++fresh_;
      if (!fresh) always_[to_size(part)] = false;
    }
  }

  void tell(StreamReport& report) const {
    report.parts = parts_;
    if (seen_ == 0) return;
    report.fresh_share = static_cast<double>(fresh_) / static_cast<double>(seen_);
    for (int part = 0; part < parts_; ++part)
      if (always_[to_size(part)]) report.fresh_parts.push_back(part);
  }

private:
  struct Use {
    OpId op{};
    int part = 0;
  };
  /// How many iterations the weights that an op brings are older than it: with one buffer it brings
  /// those that waited for its part's B.
  [[nodiscard]] static int updates_late(const Scenario& scenario) {
    return scenario.train.buffers == 1 ? scenario.train.staleness : 0;
  }

  int late_;
  int parts_ = 0;
  std::vector<Use> uses_;
  std::vector<bool> always_;
  std::int64_t seen_ = 0, fresh_ = 0;
};

/// A stream, and the controller that sees its telemetry.
class AdaptingStream {
public:
  /// All outlive this.
  AdaptingStream(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement,
                 int iterations, const Plan& plan)
      : schedule_{schedule},
        scenario_{scenario},
        arrangement_{arrangement},
        iterations_{iterations},
        first_{plan},
        controller_{controller_of(scenario, plan)},
        telemetry_{plan},
        first_setting_{controller_.setting()} {}

  /// The setting that follows from the iterations up to this one, if one is due.
  std::optional<plan::StreamSetting> steer(const sim::StreamedIteration& done) {
    telemetry_.add(done);
    telemetry_.forget_before(done.iteration + 1 - std::max(scenario_.train.adapt.every, 2));
    const int from =
        planner::TrainingController::first_open(done.iteration, scenario_.train.staleness);
    const std::optional<int> first = controller_.window(done.iteration);
    if (!first || from >= iterations_) return std::nullopt;
    const planner::TuneChoice before = controller_.setting();
    const Bandwidth measured =
        bandwidth_of(controller_, telemetry_.longest_hold(*first, done.iteration));
    const planner::Adaptation made = controller_.decide(
        done.iteration, telemetry_.of(*first, done.iteration, before.batch), measured);
    decisions_.push_back(made);
    Plan next =
        planner::lower_reported(schedule_, with_setting(scenario_, made.setting), arrangement_)
            .plan;
    plan::StreamSetting setting =
        plan::setting_between(last_ ? *last_ : first_, next, made.iteration);
    last_ = std::move(next);
    return setting;
  }

  [[nodiscard]] AdaptationReport report() const {
    return adaptation_report(first_setting_, decisions_, iterations_);
  }

private:
  const Schedule& schedule_;
  const Scenario& scenario_;
  Arrangement arrangement_;
  int iterations_;
  const Plan& first_;
  std::optional<Plan> last_;
  planner::TrainingController controller_;
  StreamTelemetry telemetry_;
  planner::TuneChoice first_setting_;
  std::vector<planner::Adaptation> decisions_;
};

StreamReport steered_report(const Plan& plan, const Scenario& scenario, const plan::Stream& stream,
                            const sim::StreamSteering& steering) {
  const int iterations = stream.iterations;
  StreamReport report;
  report.schedule = plan.schedule;
  report.wan_bytes = busiest_way(plan);
  FreshParts fresh{plan, scenario};
  const plan::Weather weather{plan, scenario};
  const plan::WeatherOfIteration at{weather.calm() ? nullptr : &weather, 0, {}};
  const auto take = [&](const sim::StreamedIteration& done) {
    report.iteration_start.push_back(planner::first_block(plan, done.results));
    if (done.iteration >= iterations / 2 && done.iteration <= iterations - 3) fresh.add(done);
    return steering(done);
  };
  sim::simulate_steered_stream(plan, stream, take, at);
  fresh.tell(report);
  report.period = planner::period_of(report.iteration_start);
  return report;
}

}  // namespace

Bytes busiest_way(const Plan& plan) {
  std::map<std::pair<DatacenterId, DatacenterId>, Bytes> ways;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    if (op.kind != OpKind::send || !plan.crosses_datacenters(OpId{i})) continue;
    ways[{plan.ranks[index(plan.rank_of(OpId{i}))].datacenter,
          plan.ranks[index(op.peer)].datacenter}] += op.size;
  }
  Bytes most;
  for (const auto& [way, bytes] : ways) most = std::max(most, bytes);
  return most;
}

StreamReport stream_report(const Plan& plan, const Scenario& scenario, int iterations,
                           std::vector<plan::StreamSetting> settings) {
  return steered_report(plan, scenario, {iterations, std::move(settings)},
                        [](const auto&) { return std::nullopt; });
}

StreamReport adapted_stream(const Schedule& schedule, const Scenario& scenario,
                            Arrangement arrangement, int iterations) {
  Plan plan = planner::lower_reported(schedule, scenario, arrangement).plan;
  AdaptingStream stream{schedule, scenario, arrangement, iterations, plan};
  StreamReport report =
      steered_report(plan, scenario, {iterations, {}},
                     [&](const sim::StreamedIteration& done) { return stream.steer(done); });
  report.adaptation = stream.report();
  return report;
}

std::vector<StreamReport> all_streams(std::span<const planner::ScheduleResult> schedules,
                                      const Scenario& scenario, Arrangement arrangement,
                                      int iterations) {
  std::vector<StreamReport> reports;
  if (scenario.parallel.gradient_sync != GradientSync::compressed) return reports;
  for (const planner::ScheduleResult& made : schedules)
    reports.push_back(
        scenario.train.adapt.every > 0
            ? adapted_stream(made.schedule, scenario, arrangement, iterations)
            : stream_report(planner::lower_reported(made.schedule, scenario, arrangement).plan,
                            scenario, iterations));
  return reports;
}

nlohmann::ordered_json stream_json(const StreamReport& stream) {
  nlohmann::ordered_json json{{"iteration_start_ns", nlohmann::ordered_json::array()}};
  for (const Duration start : stream.iteration_start)
    json["iteration_start_ns"].push_back(start.count());
  json["period_ns"] = nullptr;
  if (stream.period) json["period_ns"] = stream.period->count();
  json["fresh_share"] = nullptr;
  if (stream.fresh_share) json["fresh_share"] = *stream.fresh_share;
  json["fresh_parts"] = stream.fresh_parts;
  json["wan_bytes"] = stream.wan_bytes.count();
  if (!stream.adaptation) return json;
  json["samples"] = stream.adaptation->samples;
  json["effective_samples"] = stream.adaptation->effective_samples;
  json["adaptation"] = adaptation_json(*stream.adaptation);
  return json;
}

std::string streams_text(std::span<const StreamReport> streams) {
  if (streams.empty()) return "";
  double longest = 0;
  for (const StreamReport& each : streams)
    if (each.period) longest = std::max(longest, static_cast<double>(each.period->count()));
  const TimeScale scale{longest};
  Table table{{{"as a stream", Align::left},
               {fmt::format("period [{}]", scale.unit())},
               {"fresh parts"},
               {"over the WAN"}}};
  for (const StreamReport& each : streams)
    table.add_row({each.schedule,
                   each.period ? scale.text(static_cast<double>(each.period->count())) : "-",
                   each.fresh_share ? fmt::format("{:.1f}%", 100 * *each.fresh_share) : "-",
                   to_text(each.wan_bytes)});
  std::string text =
      fmt::format("\n{} iterations without a barrier:\n", streams.front().iteration_start.size()) +
      table.text();
  for (const StreamReport& each : streams)
    if (each.adaptation) text += adaptation_text(each.schedule, *each.adaptation);
  return text;
}

}  // namespace longhaul::report
