#include "prefill/outcome.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

/// The smallest of sorted times that a share of them does not exceed.
Duration percentile(const std::vector<Duration>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

std::int64_t iterations_until(const std::vector<Decision>& decisions, Duration period) {
  Duration last{1};
  for (const Decision& decision : decisions)
    last = std::max({last, decision.arrival, decision.refused ? Duration{} : decision.end});
  return (last + period - Duration{1}) / period;
}

/// What is computed of a prompt whose prefix was there already: less than all of it.
std::optional<double> useful_of(const ServedModel& model, const Decision& decision) {
  const auto all = model.useful_ns(decision.tokens);
  if (!all || decision.cached == 0) return all;
  return *all - *model.useful_ns(decision.cached);
}

Utilisation utilisation_of(const IterationBubbles& iteration, const std::vector<Served>& served,
                           const std::vector<Decision>& decisions, std::int64_t iterations) {
  Utilisation share;
  share.training = iteration.busy_ratio();
  const double time = static_cast<double>(iteration.period.count()) * iteration.gpus *
                      static_cast<double>(iterations);
  if (time == 0) return share;
  double filled = 0;
  std::optional<double> useful = 0;
  for (const Decision& decision : decisions) {
    if (decision.refused) continue;
    filled += static_cast<double>(decision.compute.count());
    if (decision.unfinished) continue;
    const auto own = useful_of(served[decision.model].model, decision);
    useful = useful && own ? std::optional{*useful + *own} : std::nullopt;
  }
  share.prefill = filled / time;
  share.total = share.training + share.prefill;
  if (useful) share.useful = share.training + *useful / time;
  return share;
}

void add_parts(const TtftParts& one, Outcome::Parts& sum) {
  const auto add = [](double& to, Duration time) { to += static_cast<double>(time.count()); };
  add(sum.network, one.network);
  add(sum.decision, one.decision);
  add(sum.wait, one.wait);
  add(sum.compute, one.compute);
  add(sum.hop, one.hop);
  add(sum.kv, one.kv);
  add(sum.first_token, one.first_token);
}

}  // namespace

std::vector<PromptClass> prompt_classes(const std::vector<Decision>& decisions) {
  std::vector<PromptClass> classes;
  for (const std::int64_t below : {128, 256, 512, 1024, 2048, 4096, 8192})
    classes.push_back({.below = below});
  classes.emplace_back();
  for (const Decision& decision : decisions) {
    PromptClass& own = *std::ranges::upper_bound(classes.begin(), classes.end() - 1,
                                                 decision.tokens, {}, &PromptClass::below);
    ++own.offered;
    own.refused += decision.refused.has_value();
    own.done += decision.is_done();
  }
  std::erase_if(classes, [](const PromptClass& each) { return each.offered == 0; });
  return classes;
}

TtftParts ttft_parts(const Decision& decision) {
  TtftParts parts{.network = decision.network,
                  .hop = decision.hops,
                  .kv = decision.kv,
                  .first_token = decision.first_token};
  // The passes it took part in; what stages of several passes compute at once counts once.
  parts.compute = decision.end - decision.start - decision.hops;
  if (!decision.passes.empty()) {
    Duration inside{};
    for (const PlacedPass& pass : decision.passes) inside += pass.time;
    parts.compute = std::min(parts.compute, inside);
  }
  parts.wait = decision.ttft() - parts.sum();
  return parts;
}

Outcome summarize_decisions(const IterationBubbles& iteration, const std::vector<Served>& served,
                            const std::vector<Decision>& decisions,
                            std::optional<std::int64_t> iterations) {
  Outcome outcome;
  if (iterations)
    outcome.iterations = *iterations;
  else if (iteration.period > Duration{})
    outcome.iterations = iterations_until(decisions, iteration.period);
  outcome.utilisation = utilisation_of(iteration, served, decisions, outcome.iterations);
  outcome.offered = std::ssize(decisions);
  outcome.by_length = prompt_classes(decisions);
  std::vector<Duration> ttft;
  for (const Decision& decision : decisions) {
    if (decision.refused) {
      ++outcome.refused[static_cast<std::size_t>(*decision.refused)];
      outcome.lacks = std::max(outcome.lacks, decision.lacks);
      continue;
    }
    if (decision.unfinished) {
      ++outcome.unfinished;
      continue;
    }
    ++outcome.done;
    outcome.tokens_served += decision.tokens;
    outcome.cached_tokens += decision.cached;
    ttft.push_back(decision.ttft());
    add_parts(ttft_parts(decision), outcome.parts);
  }
  if (ttft.empty()) return outcome;
  for (double* const part :
       {&outcome.parts.network, &outcome.parts.decision, &outcome.parts.wait,
        &outcome.parts.compute, &outcome.parts.hop, &outcome.parts.kv, &outcome.parts.first_token})
    *part /= static_cast<double>(ttft.size());
  std::ranges::sort(ttft);
  outcome.ttft = TimePercentiles{percentile(ttft, 0.5), percentile(ttft, 0.9),
                                 percentile(ttft, 0.99), ttft.back()};
  return outcome;
}

std::optional<PrefillCost> prefill_cost(const std::vector<Served>& served,
                                        const std::vector<Decision>& decisions, int gpus,
                                        double gpu_hour, Duration wall, Duration delay) {
  constexpr double kHour = 3.6e12;  // ns
  double tokens = 0, alone = 0;     // alone: ns on one GPU
  for (const Decision& decision : decisions) {
    if (!decision.is_done()) continue;
    tokens += static_cast<double>(decision.tokens);
    alone += static_cast<double>(served[decision.model].model.time(decision.tokens)->count());
  }
  if (tokens == 0 || wall <= Duration{}) return std::nullopt;
  PrefillCost cost{.gpu_hour = gpu_hour};
  cost.gpus_saved = alone / static_cast<double>(wall.count());
  cost.training_delay = static_cast<double>(delay.count()) * gpus * gpu_hour / kHour;
  cost.per_million_bubbles = cost.training_delay * 1e6 / tokens;
  cost.per_million_dedicated = alone / kHour * gpu_hour * 1e6 / tokens;
  cost.break_even_price = cost.per_million_bubbles;
  return cost;
}

std::optional<double> gpu_hour_of(const Scenario& scenario) {
  if (!scenario.is_placed()) return std::nullopt;
  double sum = 0;
  for (int rank = 0; rank < scenario.training_ranks(); ++rank) {
    const auto& price = scenario.datacenters[index(scenario.datacenter_of(Rank{rank}))].price;
    if (!price) return std::nullopt;
    sum += *price;
  }
  return sum / scenario.training_ranks();
}

}  // namespace longhaul::prefill
