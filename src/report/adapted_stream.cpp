#include "report/adapted_stream.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

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

AdaptationReport adaptation_report(const planner::TuneChoice& first,
                                   std::vector<planner::Adaptation> decisions, int iterations) {
  AdaptationReport report;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const auto next =
        std::ranges::upper_bound(decisions, iteration, {}, &planner::Adaptation::iteration);
    const planner::TuneChoice& setting =
        next == decisions.begin() ? first : std::prev(next)->setting;
    const auto samples =
        std::accumulate(setting.batch.begin(), setting.batch.end(), std::int64_t{0});
    report.samples += samples;
    report.effective_samples += static_cast<double>(samples) / (1 + setting.g);
  }
  report.decisions = std::move(decisions);
  return report;
}

StreamTelemetry::StreamTelemetry(const Plan& plan)
    : plan_{plan}, sends_{sends_between_datacenters(plan)} {
  for (std::uint32_t i = 0; i < plan.lanes.size(); ++i)
    if (plan.lanes[i].name == "compute" && plan.lanes[i].count > 0) compute_.push_back(LaneId{i});
  std::set<ResourceId> links;
  for (const OpId send : sends_)
    each_held_link(plan, send, [&](ResourceId link) { links.insert(link); });
  links_.assign(links.begin(), links.end());
}

StreamTelemetry::OfRank StreamTelemetry::seen_by(Rank rank, const OpTimes& times) const {
  const auto compute = std::ranges::find_if(
      compute_, [&](LaneId id) { return plan_.lanes[index(id)].rank == rank; });
  LONGHAUL_ASSERT(compute != compute_.end(), "rank {} has no blocks", index(rank));
  const Lane& lane = plan_.lanes[index(*compute)];
  OfRank seen{times[index(lane.first)].start, {}, std::vector<Duration>(links_.size())};
  for (std::size_t op = index(lane.first); op < index(lane.first) + lane.count; ++op) {
    seen.start = std::min(seen.start, times[op].start);
    seen.busy += times[op].end - times[op].start;
  }
  for (const OpId send : sends_) {
    if (plan_.rank_of(send) != rank) continue;
    each_held_link(plan_, send, [&](ResourceId link) {
      const auto place = std::ranges::lower_bound(links_, link) - links_.begin();
      seen.held[to_size(place)] += times[index(send)].end - times[index(send)].start;
    });
  }
  return seen;
}

void StreamTelemetry::add(int iteration, Rank rank, OfRank seen) {
  std::vector<OfRank>& ranks = iterations_[iteration];
  ranks.resize(compute_.size());
  for (std::size_t r = 0; r < compute_.size(); ++r)
    if (plan_.lanes[index(compute_[r])].rank == rank) ranks[r] = std::move(seen);
}

void StreamTelemetry::add(const sim::StreamedIteration& done) {
  for (const LaneId id : compute_) {
    const Rank rank = plan_.lanes[index(id)].rank;
    add(done.iteration, rank, seen_by(rank, done.results.times));
  }
}

std::vector<planner::RankTelemetry> StreamTelemetry::of(int first, int last,
                                                        const std::vector<int>& batch) const {
  std::vector<planner::RankTelemetry> ranks;
  const std::vector<OfRank>& begin = iterations_.at(first);
  const std::vector<OfRank>& end = iterations_.at(last);
  for (std::size_t r = 0; r < begin.size(); ++r) {
    Duration busy{};
    for (int i = first; i < last; ++i) busy += iterations_.at(i)[r].busy;
    const double period = in_seconds(end[r].start - begin[r].start);
    ranks.push_back({batch[r], in_seconds(busy) / (last - first),
                     std::max(0.0, 1 - in_seconds(busy) / period)});
  }
  return ranks;
}

Duration StreamTelemetry::longest_hold(int first, int last) const {
  std::vector<Duration> held(links_.size());
  for (int i = first; i < last; ++i)
    for (const OfRank& rank : iterations_.at(i))
      for (std::size_t link = 0; link < held.size(); ++link) held[link] += rank.held[link];
  return held.empty() ? Duration::zero() : std::ranges::max(held) / (last - first);
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

Bandwidth bandwidth_of(const planner::TrainingController& controller, Duration held) {
  return Bandwidth{controller.model_bits() * (1 - controller.setting().compression_rate) * 1e9 /
                   static_cast<double>(std::max<std::int64_t>(held.count(), 1))};
}

/// What else was changed after the scenario was read stays.
Scenario by_throughput(const Scenario& scenario) {
  std::vector<std::string> set = scenario::stored_options(scenario.text).set;
  set.insert(set.end(), {"train.hetero=true", "train.adapt.every=0"});
  const Scenario read = scenario::parse_scenario(scenario.text, scenario.name, set);
  Scenario changed = scenario;
  changed.costs = read.costs;
  changed.replica_costs = read.replica_costs;
  changed.train.batch = read.train.batch;
  return changed;
}

/// Limits of memory are of what the scenario says and tune() chooses: this may be tried as well.
Scenario with_setting(const Scenario& scenario, const planner::TuneChoice& setting) {
  std::vector<std::string> set = scenario::stored_options(scenario.text).set;
  if (scenario.train.adapt.most_batch > 0)
    set.push_back(fmt::format("train.adapt.most_batch={}", std::ranges::max(setting.batch)));
  if (std::ranges::any_of(scenario.memory.capacity,
                          [](const auto& each) { return each.has_value(); }))
    set.emplace_back("memory.capacity=1000000TiB");
  set.push_back(fmt::format("train.batch=[{}]", fmt::join(setting.batch, ", ")));
  set.emplace_back("train.hetero=false");
  const Scenario read = scenario::parse_scenario(scenario.text, scenario.name, set);
  Scenario changed = scenario;
  changed.costs = read.costs;
  changed.replica_costs = read.replica_costs;
  changed.train.batch = setting.batch;
  changed.train.compress.keep = 1 - setting.compression_rate;
  return changed;
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
