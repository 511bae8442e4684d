#include "prefill/outcome.hpp"

#include <algorithm>
#include <cmath>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

std::vector<PromptClass> prompt_classes(const std::vector<Decision>& decisions) {
  std::vector<PromptClass> classes;
  for (const std::int64_t below : {128, 256, 512, 1024, 2048, 4096, 8192})
    classes.push_back({.below = below});
  classes.emplace_back();
  for (const Decision& decision : decisions) {
    PromptClass& own = *std::ranges::upper_bound(classes.begin(), classes.end() - 1,
                                                 decision.tokens, {}, &PromptClass::below);
    ++own.offered;
    ++(decision.refused ? own.refused : own.done);
  }
  std::erase_if(classes, [](const PromptClass& each) { return each.offered == 0; });
  return classes;
}

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
    const auto own = served[decision.model].model.useful_ns(decision.tokens);
    useful = useful && own ? std::optional{*useful + *own} : std::nullopt;
  }
  share.prefill = filled / time;
  share.total = share.training + share.prefill;
  if (useful) share.useful = share.training + *useful / time;
  return share;
}

}  // namespace

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
      continue;
    }
    ++outcome.done;
    outcome.tokens_served += decision.tokens;
    ttft.push_back(decision.end - decision.arrival);
    outcome.wait_ns += static_cast<double>((decision.start - decision.arrival).count());
    outcome.compute_ns += static_cast<double>(decision.compute.count());
    outcome.hop_ns += static_cast<double>(decision.hops.count());
  }
  if (ttft.empty()) return outcome;
  for (double* const part : {&outcome.wait_ns, &outcome.compute_ns, &outcome.hop_ns})
    *part /= static_cast<double>(ttft.size());
  std::ranges::sort(ttft);
  outcome.ttft = TimePercentiles{percentile(ttft, 0.5), percentile(ttft, 0.9),
                                 percentile(ttft, 0.99), ttft.back()};
  return outcome;
}

}  // namespace longhaul::prefill
