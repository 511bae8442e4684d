#include "plan/jitter.hpp"

#include <cmath>

#include "base/portable_math.hpp"
#include "base/random.hpp"

namespace longhaul {
namespace {

/// The mean of exp(sigma z) for z = Random::normal(), a sum of twelve uniforms.
double mean_of_exponential(double sigma) {
  const double half = sigma / 2;
  if (half < 1e-3) return 1 + 2 * half * half;  // 12 h^2 / 6
  const double of_one = (exponential(half) - exponential(-half)) / (2 * half);
  double mean = 1;
  for (int i = 0; i < 12; ++i) mean *= of_one;
  return mean;
}

constexpr std::uint64_t kStream = 0x6a697474;  // apart from other uses of run.seed

}  // namespace

LinkJitter::LinkJitter(const Link& link, std::uint64_t seed)
    : seed_{derived_seed(derived_seed(seed, kStream), index(link.from), index(link.to))},
      latency_{spread_of(link.jitter.latency, link.jitter.correlation)},
      transfer_{spread_of(link.jitter.transfer, link.jitter.correlation)} {}

LinkJitter::Spread LinkJitter::spread_of(double spread, double correlation) {
  const double sigma = std::sqrt(logarithm(1 + spread * spread));
  Spread result;
  if (spread == 0) return result;
  result.shared = sigma * std::sqrt(correlation);
  result.own = sigma * std::sqrt(1 - correlation);
  result.mean = mean_of_exponential(result.shared) * mean_of_exponential(result.own);
  return result;
}

JitterFactors LinkJitter::of(std::uint64_t iteration, Rank from, Rank to,
                             const Block& producer) const {
  const std::uint64_t of_iteration = derived_seed(seed_, iteration + 1);
  const auto what = 2 * static_cast<std::uint64_t>(producer.chunk) +
                    static_cast<std::uint64_t>(is_backward(producer.kind));
  Random all{derived_seed(of_iteration, 0, 1)};
  Random one{derived_seed(derived_seed(of_iteration, index(from) + 1, index(to)), what + 1,
                          static_cast<std::uint64_t>(producer.microbatch))};
  const auto factor = [&](const Spread& spread) {
    const double shared = spread.shared * all.normal();
    const double own = spread.own * one.normal();
    return spread.mean == 1 ? 1 : exponential(shared + own) / spread.mean;
  };
  JitterFactors factors;
  factors.latency = factor(latency_);
  factors.transfer = factor(transfer_);
  return factors;
}

JitteredPlan::JitteredPlan(Plan plan, const Scenario& scenario) : plan_{std::move(plan)} {
  std::vector<std::size_t> place(scenario.links.size());  // in links_, plus 1; 0: no jitter
  for (std::size_t i = 0; i < scenario.links.size(); ++i) {
    if (!scenario.links[i].jitter.any()) continue;
    links_.emplace_back(scenario.links[i], scenario.run.seed);
    place[i] = links_.size();
  }
  if (links_.empty()) return;
  for (std::uint32_t id = 0; id < plan_.ops.size(); ++id) {
    const Op& send = plan_.ops[id];
    if (send.kind != OpKind::send) continue;
    const Rank from = plan_.rank_of(OpId{id});
    const Link* link = scenario.link(plan_.ranks[index(from)].datacenter,
                                     plan_.ranks[index(send.peer)].datacenter);
    if (link == nullptr) continue;
    const std::size_t at = place[static_cast<std::size_t>(link - scenario.links.data())];
    if (at == 0) continue;
    messages_.push_back(
        {OpId{id}, OpId{send.match}, at - 1, send.duration, plan_.ops[send.match].duration});
  }
}

const Plan& JitteredPlan::in(std::uint64_t iteration) {
  for (const Message& message : messages_) {
    Op& send = plan_.ops[index(message.send)];
    const JitterFactors factors =
        links_[message.link].of(iteration, plan_.rank_of(message.send), send.peer, send.block());
    send.duration = scaled(message.transfer, factors.transfer);
    plan_.ops[index(message.recv)].duration = scaled(message.latency, factors.latency);
  }
  return plan_;
}

}  // namespace longhaul
