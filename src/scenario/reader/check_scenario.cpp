#include <algorithm>
#include <cmath>
#include <set>

#include "base/unit_text.hpp"
#include "scenario/reader/sections.hpp"

namespace longhaul::scenario {
namespace {

/// Fails where two ranks exchange something and their datacenters have no link.
class CrossingCheck {
public:
  CrossingCheck(const ConfigNode& root, const Scenario& scenario)
      : tables_{tables_of(root, "datacenter")}, scenario_{scenario} {}

  void stages() {
    for (const ReplicaId replica : scenario_.replica_ids()) {
      for (const DeviceId stage : ids<DeviceId>(scenario_.parallel.stages - 1)) {
        const DeviceId after = next(stage);
        const Rank one = scenario_.rank(replica, stage);
        const Rank other = scenario_.rank(replica, after);
        const auto why = [&](DeviceId from, DeviceId to, std::string_view what) {
          return fmt::format("stage {} of replica {} sends {} to stage {}", from, replica, what,
                             to);
        };
        require(one, other, [&] { return why(stage, after, "activations"); });
        require(other, one, [&] { return why(after, stage, "gradients"); });
      }
    }
  }

  /// Gradients go round a ring of the replicas of a stage.
  void replicas() {
    const int count = scenario_.parallel.replicas;
    if (count < 2 || scenario_.parallel.gradient_sync == GradientSync::none) return;
    for (const DeviceId stage : scenario_.device_ids()) {
      for (const ReplicaId replica : scenario_.replica_ids()) {
        const ReplicaId taker = next_in_ring(replica, count);
        require(scenario_.rank(replica, stage), scenario_.rank(taker, stage), [&] {
          return fmt::format("replicas {} and {} of stage {} synchronise gradients", replica, taker,
                             stage);
        });
      }
    }
  }

private:
  template <typename Why>
  void require(Rank from, Rank to, Why why) {
    const DatacenterId a = scenario_.datacenter_of(from);
    const DatacenterId b = scenario_.datacenter_of(to);
    if (a == b || !seen_.insert({a, b}).second || scenario_.link(a, b) != nullptr) return;
    const std::string& x = scenario_.datacenters[index(a)].name;
    const std::string& y = scenario_.datacenters[index(b)].name;
    fail_at(tables_[index(a)]->place,
            "there is no link from {} to {} ({}). Add [[link]] between = [\"{}\", \"{}\"].", x, y,
            why(), x, y);
  }

  std::vector<const ConfigNode*> tables_;
  const Scenario& scenario_;
  std::set<std::pair<DatacenterId, DatacenterId>> seen_;
};

double largest(const std::vector<Duration>& times) {
  return static_cast<double>(std::ranges::max_element(times)->count());
}

double largest(const std::vector<Bytes>& sizes) {
  return static_cast<double>(std::ranges::max_element(sizes)->count());
}

/// The values of all weather that make an iteration longest.
struct WorstWeather {
  double rate = Bandwidth::unlimited().bits_per_second();
  double latency = 0;  ///< ns
  double delay = 0;    ///< ns, of a lost message
  double out = 0;      ///< ns of outages of all links
};

WorstWeather worst_weather(const Scenario& scenario) {
  WorstWeather worst;
  const auto raise = [](double& value, Duration to) {
    value = std::max(value, static_cast<double>(to.count()));
  };
  std::set<const LinkTrace*> seen;
  bool by_round_trip = false;
  for (const Link& link : scenario.links) {
    raise(worst.latency, link.latency);
    raise(worst.delay, link.weather.loss.delay.value_or(Duration::zero()));
    by_round_trip = by_round_trip || !link.weather.loss.delay;
    for (const Outage& outage : link.weather.outages)
      worst.out += static_cast<double>(outage.length.count());
    const LinkTrace* const trace = link.weather.trace.get();
    if (trace == nullptr || !seen.insert(trace).second) continue;
    for (const LinkState& state : trace->states) {
      raise(worst.latency, state.latency);
      worst.rate = std::min(worst.rate, state.bandwidth.bits_per_second());
    }
  }
  if (by_round_trip) worst.delay = std::max(worst.delay, 2 * worst.latency);
  return worst;
}

double slowest_rate(const Scenario& scenario) {
  double rate = Bandwidth::unlimited().bits_per_second();
  for (const Link& link : scenario.links)
    rate = std::min({rate, link.bandwidth.bits_per_second(), link.aggregate.bits_per_second()});
  for (const NodeInterfaces& node : scenario.nodes)
    rate = std::min({rate, node.egress.bits_per_second(), node.ingress.bits_per_second(),
                     node.internal.bits_per_second()});
  return rate;
}

/// The largest factor that jitter puts on a time: six standard deviations of its logarithm; of an
/// exponential one, the longest tail of 53 random bits.
double largest_jitter(const Scenario& scenario) {
  double largest = 1;
  for (const Link& link : scenario.links) {
    const double spread = std::max(link.jitter.latency, link.jitter.transfer);
    const bool has_tail = link.jitter.kind == JitterKind::exponential;
    largest = std::max(
        largest, has_tail ? 1 + 37 * spread : std::exp(6 * std::sqrt(std::log1p(spread * spread))));
  }
  return largest;
}

bool loses(const Scenario& scenario) {
  return std::ranges::any_of(scenario.links,
                             [](const Link& link) { return link.weather.loss.probability > 0; });
}

/// The same of the exchange and the update of the parts of replicas that train together: no set is
/// larger than 8 bytes a number, and no two of them overlap.
double longest_exchange(const Scenario& scenario, double latency, double rate) {
  if (scenario.parallel.gradient_sync != GradientSync::compressed) return 0;
  constexpr double kBytesOfLargestPreset = 8 * 139e6;
  const Training& train = scenario.train;
  const double parts = train.parts * scenario.parallel.chunks;
  double tasks = 0;
  for (const auto times : kPartCosts)
    if (!(train.costs.*times).empty()) tasks += largest(train.costs.*times);
  double bytes = 4 * largest(scenario.costs.weights);
  if (!train.stands_for.empty()) bytes += kBytesOfLargestPreset;
  const double dense = train.gather == GradientGather::none ? 0 : bytes;
  if (train.message) bytes = parts * static_cast<double>(train.message->count());
  const double pairs = static_cast<double>(scenario.parallel.replicas) * scenario.parallel.replicas;
  return 2 * parts * tasks + pairs * (parts * latency + (bytes + dense) / rate);
}

/// Nanoseconds of an iteration in which nothing overlaps.
double longest_iteration(const Scenario& scenario) {
  const Costs& costs = scenario.costs;
  const Parallel& parallel = scenario.parallel;
  const WorstWeather worst = worst_weather(scenario);
  const double latency = worst.latency;
  const double rate = std::min(slowest_rate(scenario), worst.rate) / 8e9;
  const double blocks =
      largest(costs.forward) + largest(costs.recompute) +
      std::max(largest(costs.backward), largest(costs.dgrad) + largest(costs.wgrad));
  const double late = loses(scenario) ? worst.delay : 0;
  const double message =
      largest_jitter(scenario) * (latency + largest(costs.message) / rate) + late;
  const double ring = 4.0 * parallel.replicas * (latency + largest(costs.weights) / rate);
  double slow = scenario.run.time_scale * (1 + 6 * scenario.run.noise) * scenario.overlap.largest();
  if (!scenario.run.stragglers.empty())
    slow *= std::max(1.0, *std::ranges::max_element(scenario.run.stragglers));
  return slow * parallel.stages * parallel.chunks *
             (static_cast<double>(parallel.microbatches) * (blocks + 2 * message) + ring +
              largest_jitter(scenario) * longest_exchange(scenario, latency + late, rate)) +
         scenario.run.time_scale * worst.out +
         (costs.optimizer.empty() ? 0 : slow * largest(costs.optimizer));
}

/// A transfer is followed through every state of a trace that it meets: one that meets the same
/// ones millions of times says that the unit of something is wrong.
void check_repeats(const ConfigPosition& place, const Scenario& scenario) {
  constexpr double kMostPlayedStates = 1e6;
  const WorstWeather worst = worst_weather(scenario);
  const double weights = scenario.parallel.replicas > 1 ? largest(scenario.costs.weights) : 0;
  const double bytes = std::max(largest(scenario.costs.message), 2 * weights);
  const double longest = bytes * 8e9 / std::min(slowest_rate(scenario), worst.rate) +
                         4.0 * scenario.parallel.replicas * worst.latency;
  for (const Link& link : scenario.links) {
    if (!link.weather.repeat) continue;
    const LinkTrace& trace = *link.weather.trace;
    const double rounds = longest / static_cast<double>(link.weather.repeat->count());
    if (rounds * static_cast<double>(trace.states.size()) > kMostPlayedStates)
      fail_at(place,
              "link.trace_repeat = \"{}\" is too short (one transfer could meet the trace of {} "
              "{:.0f} times). Use more.",
              longhaul::to_text(*link.weather.repeat), shown(trace.name), rounds);
  }
}

void check_numbers(const ConfigPosition& place, const Scenario& scenario) {
  constexpr double kLimit = 0x1p62;
  const double time = longest_iteration(scenario);
  if (!(time < kLimit))
    fail_at(place,
            "an iteration could take {:.3g} years (146 is the limit of 64 bits). Check "
            "times, rates and counts.",
            time / 1e9 / 86400 / 365.25);
  const double held = largest(scenario.costs.activation) * scenario.parallel.microbatches *
                          scenario.parallel.chunks +
                      16 * largest(scenario.costs.weights);
  const double budget = largest(scenario.costs.activation) * scenario.memory.budget *
                        std::min(scenario.parallel.stages, scenario.parallel.microbatches);
  if (!(std::max(held, budget) < kLimit))
    fail_at(place,
            "a device could hold {:.3g} bytes (2^62 is the limit). Check costs.activation, "
            "costs.weights, memory.budget and the counts.",
            std::max(held, budget));
}

/// Tensor parallelism is a factor on the costs of a rank, or makes ranks.
void refuse_tensor_twice(const ConfigNode& root, const Scenario& scenario) {
  const int tensor = scenario.parallel.tensor;
  if (tensor == 1) return;
  const ConfigPosition& place = root.find("parallel")->find("tensor")->place;
  if (scenario.model && scenario.model->tensor_parallel > 1)
    fail_at(place,
            "parallel.tensor = {} and model.tensor_parallel = {} are both given (the one makes "
            "ranks, the other is a factor on the costs of one). Set one of them to 1.",
            tensor, scenario.model->tensor_parallel);
  if (!scenario.is_placed())
    fail_at(place,
            "parallel.tensor = {} beside stages without a place (who places them counts ranks of a "
            "stage as one). Give each [[datacenter]] its stages, or write model.tensor_parallel.",
            tensor);
}

/// Each tensor rank has whole heads.
void refuse_divided_heads(const ConfigNode& root, const Scenario& scenario) {
  const int tensor = scenario.parallel.tensor;
  if (tensor == 1 || !scenario.model || scenario.model->heads % tensor == 0) return;
  fail_at(
      root.find("parallel")->find("tensor")->place,
      "parallel.tensor = {} does not divide {} heads (each rank has whole ones). Use a divisor.",
      tensor, scenario.model->heads);
}

}  // namespace

void check_scenario(const ConfigNode& root, const Scenario& scenario, bool weights_known) {
  const ConfigPosition& place = root.find("parallel")->place;
  check_numbers(place, scenario);
  check_repeats(place, scenario);
  const Parallel& parallel = scenario.parallel;
  if (!scenario.is_placed() && parallel.gradient_sync != GradientSync::none && !weights_known)
    fail_at(place,
            "stages without a place need costs.weights (whoever places them chooses replicas, and "
            "without a model nothing tells the size of the gradients). Add costs.weights, or "
            "gradient_sync = \"none\".");
  if (parallel.replicas > 1 && parallel.gradient_sync != GradientSync::none && !weights_known)
    fail_at(place,
            "parallel.replicas = {} needs costs.weights (without a model nothing tells the "
            "size of the gradients). Add costs.weights, or gradient_sync = \"none\".",
            parallel.replicas);
  if (!scenario.is_placed() && parallel.gradient_sync == GradientSync::compressed)
    fail_at(place,
            "gradient_sync = \"compressed\" beside stages without a place (whoever places them "
            "reckons with whole gradients). Give each [[datacenter]] its stages or replicas.");
  refuse_tensor_twice(root, scenario);
  refuse_divided_heads(root, scenario);
  if (!scenario.is_placed()) return;
  CrossingCheck crossing{root, scenario};
  crossing.stages();
  crossing.replicas();
}

}  // namespace longhaul::scenario
