#include "report/adapted_stream.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/table.hpp"
#include "planner/tune/tune_problem.hpp"
#include "scenario/reader/load.hpp"
#include "scenario/reader/stored_text.hpp"

namespace longhaul::report {
namespace {

/// Calls `take` with each link that a message between datacenters holds.
template <typename Take>
void each_held_link(const Plan& plan, OpId send, Take take) {
  for (const ResourceId held : plan.resources_of(send)) {
    const ResourceKind kind = plan.resources[index(held)].kind;
    if (kind == ResourceKind::link || kind == ResourceKind::shared_link) take(held);
  }
}

std::vector<OpId> sends_between_datacenters(const Plan& plan) {
  std::vector<OpId> sends;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].kind == OpKind::send && plan.crosses_datacenters(OpId{i}))
      sends.push_back(OpId{i});
  return sends;
}

double in_seconds(Duration time) { return static_cast<double>(time.count()) * 1e-9; }

/// Do the times of blocks follow the batch? Not where the scenario says them itself.
void require_times_of_batches(const Scenario& scenario, const std::vector<int>& batch,
                              const planner::TuneProblem& problem) {
  planner::TuneChoice larger;
  for (std::size_t r = 0; r < batch.size(); ++r)
    larger.batch.push_back(2 * static_cast<int>(std::ceil(batch[r] + problem.gpus[r].alpha)));
  larger.compression_rate = 1 - scenario.train.compress.keep;
  const Scenario other = with_setting(scenario, larger);
  for (const ReplicaId replica : scenario.replica_ids())
    if (other.costs_of(replica).forward == scenario.costs_of(replica).forward)
      fail(
          "{}: its blocks take times that no batch changes ([costs] or [model] state them), so "
          "that train.adapt.every = {} has nothing to adapt. Leave them to [train] preset, or "
          "write every = 0.",
          scenario.name, scenario.train.adapt.every);
}

/// Says in one line what `every` cannot be together with.
void require_adaptable(const Scenario& scenario) {
  const Training& train = scenario.train;
  if (scenario.parallel.tensor > 1 || scenario.parallel.microbatches > 1)
    fail(
        "{}: train.adapt.every = {} is for replicas of one rank and one microbatch (not {} ranks "
        "and {} microbatches). Set parallel.tensor and parallel.microbatches to 1.",
        scenario.name, train.adapt.every, scenario.parallel.tensor, scenario.parallel.microbatches);
  if (!is_sparse(train.compress.method))
    fail(
        "{}: train.compress.method = \"{}\" sends all numbers, so that train.adapt.every = {} has "
        "no rate to adapt. Take \"threshold\", say, or write every = 0.",
        scenario.name, to_string(train.compress.method), train.adapt.every);
  if (train.message)
    fail(
        "{}: train.message states what is sent, so that train.adapt.every = {} has no rate to "
        "adapt. Leave it out, or write every = 0.",
        scenario.name, train.adapt.every);
}

}  // namespace

StreamTelemetry::StreamTelemetry(const Plan& plan)
    : plan_{plan}, sends_{sends_between_datacenters(plan)} {
  for (std::uint32_t i = 0; i < plan.lanes.size(); ++i)
    if (plan.lanes[i].name == "compute" && plan.lanes[i].count > 0) compute_.push_back(LaneId{i});
}

void StreamTelemetry::add(const sim::StreamedIteration& done) {
  OfIteration& own = iterations_[done.iteration];
  const OpTimes& times = done.results.times;
  for (const LaneId id : compute_) {
    const Lane& lane = plan_.lanes[index(id)];
    OfRank rank{times[index(lane.first)].start, {}};
    for (std::size_t op = index(lane.first); op < index(lane.first) + lane.count; ++op) {
      rank.start = std::min(rank.start, times[op].start);
      rank.busy += times[op].end - times[op].start;
    }
    own.ranks.push_back(rank);
  }
  for (const OpId send : sends_)
    each_held_link(plan_, send, [&](ResourceId link) {
      own.held[link] += times[index(send)].end - times[index(send)].start;
    });
}

std::vector<planner::RankTelemetry> StreamTelemetry::of(int first, int last,
                                                        const std::vector<int>& batch) const {
  std::vector<planner::RankTelemetry> ranks;
  const OfIteration& begin = iterations_.at(first);
  const OfIteration& end = iterations_.at(last);
  for (std::size_t r = 0; r < begin.ranks.size(); ++r) {
    Duration busy{};
    for (int i = first; i < last; ++i) busy += iterations_.at(i).ranks[r].busy;
    const double period = in_seconds(end.ranks[r].start - begin.ranks[r].start);
    ranks.push_back({batch[r], in_seconds(busy) / (last - first),
                     std::max(0.0, 1 - in_seconds(busy) / period)});
  }
  return ranks;
}

Duration StreamTelemetry::longest_hold(int first, int last) const {
  std::map<ResourceId, Duration> held;
  for (int i = first; i < last; ++i)
    for (const auto& [link, time] : iterations_.at(i).held) held[link] += time;
  Duration longest{};
  for (const auto& [link, time] : held) longest = std::max(longest, time);
  return longest / (last - first);
}

void StreamTelemetry::forget_before(int iteration) {
  iterations_.erase(iterations_.begin(), iterations_.lower_bound(iteration));
}

double uncompressed_bytes(const Plan& plan, double keep) {
  struct Use {
    Duration time{};
    Bytes size;
  };
  std::map<ResourceId, Use> uses;
  for (const OpId send : sends_between_datacenters(plan))
    each_held_link(plan, send, [&](ResourceId link) {
      uses[link].time += plan.op(send).duration;
      uses[link].size += plan.op(send).size;
    });
  Use longest;
  for (const auto& [link, use] : uses)
    if (use.time > longest.time) longest = use;
  if (longest.size == Bytes{})
    fail(
        "{}: nothing takes time between datacenters, so that [train.adapt] has no link to adapt "
        "to. Give a [[link]] with a bandwidth, or write every = 0.",
        plan.schedule);
  return static_cast<double>(longest.size.count()) / keep;
}

std::vector<int> first_batches(const Scenario& scenario, const planner::TuneProblem& problem) {
  if (!scenario.train.batch.empty()) return scenario.train.batch;
  std::vector<int> batch;
  for (const planner::GpuSpeed& gpu : problem.gpus)
    batch.push_back(std::max(1, static_cast<int>(std::lround(gpu.alpha))));
  return batch;
}

planner::TrainingController controller_of(const Scenario& scenario, const Plan& plan) {
  require_adaptable(scenario);
  planner::TuneProblem problem = planner::tune_problem_of(scenario);
  const std::vector<int> batch = first_batches(scenario, problem);
  require_times_of_batches(scenario, batch, problem);
  const double keep = scenario.train.compress.keep;
  problem.model_bytes = uncompressed_bytes(plan, keep);
  return {{.problem = std::move(problem),
           .adapt = scenario.train.adapt,
           .staleness = scenario.train.staleness,
           .batch = batch,
           .compression_rate = 1 - keep},
          planner::surrogate_for(scenario)};
}

Scenario with_setting(const Scenario& scenario, const planner::TuneChoice& setting) {
  std::vector<std::string> set = scenario::stored_options(scenario.text).set;
  set.push_back(fmt::format("train.batch=[{}]", fmt::join(setting.batch, ", ")));
  set.push_back(fmt::format("train.compress.keep={}", 1 - setting.compression_rate));
  return scenario::parse_scenario(scenario.text, scenario.name, set);
}

nlohmann::ordered_json adaptation_json(const AdaptationReport& adaptation) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const planner::Adaptation& made : adaptation.decisions)
    json.push_back({{"iteration", made.iteration},
                    {"bandwidth_bits_per_second", made.bandwidth.bits_per_second()},
                    {"batch", made.setting.batch},
                    {"compression_rate", made.setting.compression_rate},
                    {"reason", to_string(made.reason)}});
  return json;
}

std::string adaptation_text(const std::string& schedule, const AdaptationReport& adaptation) {
  if (adaptation.decisions.empty()) return "";
  Table table{{{"from iteration"},
               {"bandwidth [Mbps]"},
               {"because", Align::left},
               {"samples"},
               {"batches", Align::left},
               {"rate [%]"}}};
  for (const planner::Adaptation& made : adaptation.decisions) {
    const std::vector<int>& batch = made.setting.batch;
    table.add_row({fmt::format("{}", made.iteration),
                   fmt::format("{:.1f}", made.bandwidth.bits_per_second() / 1e6),
                   to_string(made.reason),
                   fmt::format("{}", std::accumulate(batch.begin(), batch.end(), 0)),
                   fmt::format("{}", fmt::join(batch, " ")),
                   fmt::format("{:.2f}", 100 * made.setting.compression_rate)});
  }
  return fmt::format("\nBatches and rate of {}, adapted while it ran:\n", schedule) + table.text();
}

}  // namespace longhaul::report
