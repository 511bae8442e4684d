#include "plan/link_model/jitter.hpp"

#include <cmath>

#include "base/index.hpp"
#include "base/statistics/portable_math.hpp"

namespace longhaul::plan {
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

/// A number of mean 0 and, before the cut of a normal one, standard deviation 1.
double draw(JitterKind kind, double spread, Random& random) {
  switch (kind) {
    case JitterKind::uniform: return std::sqrt(3.0) * (2 * random.uniform() - 1);
    case JitterKind::exponential: return -logarithm(1 - random.uniform()) - 1;
    case JitterKind::normal:
    case JitterKind::lognormal: break;
  }
  for (;;) {
    const double z = random.normal();
    if (std::abs(z) * spread <= 1) return z;
  }
}

constexpr std::uint64_t kStream = 0x6a697474;  // apart from other uses of run.seed

}  // namespace

LinkJitter::LinkJitter(const Link& link, std::uint64_t seed)
    : seed_{derived_seed(derived_seed(link.jitter.seed.value_or(seed), kStream), index(link.from),
                         index(link.to))},
      jitter_{link.jitter},
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

double LinkJitter::factor(double spread, Random& all, Random& one) const {
  const double shared = draw(jitter_.kind, spread, all);
  const double own = draw(jitter_.kind, spread, one);
  return 1 + spread * (one.uniform() < std::sqrt(jitter_.correlation) ? shared : own);
}

JitterFactors LinkJitter::of(std::uint64_t iteration, Rank from, Rank to,
                             const Block& producer) const {
  const std::uint64_t of_iteration = derived_seed(seed_, iteration + 1);
  const auto what = 2 * static_cast<std::uint64_t>(producer.chunk) +
                    static_cast<std::uint64_t>(is_backward(producer.kind));
  Random all{derived_seed(of_iteration, 0, 1)};
  Random one{derived_seed(derived_seed(of_iteration, index(from) + 1, index(to)), what + 1,
                          static_cast<std::uint64_t>(producer.microbatch))};
  if (jitter_.kind != JitterKind::lognormal) {
    JitterFactors factors;
    factors.latency = factor(jitter_.latency, all, one);
    factors.transfer = factor(jitter_.transfer, all, one);
    return factors;
  }
  const auto lognormal = [&](const Spread& spread) {
    const double shared = spread.shared * all.normal();
    const double own = spread.own * one.normal();
    return spread.mean == 1 ? 1 : exponential(shared + own) / spread.mean;
  };
  JitterFactors factors;
  factors.latency = lognormal(latency_);
  factors.transfer = lognormal(transfer_);
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
    const std::size_t way = place[at(link - scenario.links.data())];
    if (way == 0) continue;
    messages_.push_back(
        {OpId{id}, OpId{send.match}, way - 1, send.duration, plan_.ops[send.match].duration});
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

}  // namespace longhaul::plan
