#include "prefill/outcome.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

/// The smallest of sorted times that a share of them does not exceed.
Duration percentile(const std::vector<Duration>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

/// ServedModel::useful_ns() of what is computed of a prompt whose prefix may have been there;
/// `rate` is the model's highest.
double useful_of(const ServedDimensions& model, double rate, const Decision& decision) {
  const double all = model.flops(decision.tokens) / rate;
  return decision.cached == 0 ? all : all - model.flops(decision.cached) / rate;
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
  PromptClasses classes;
  for (const Decision& decision : decisions) classes.add(decision);
  return classes.offered();
}

PromptClasses::PromptClasses() {
  for (const std::int64_t below : {128, 256, 512, 1024, 2048, 4096, 8192})
    classes_.push_back({.below = below});
  classes_.emplace_back();
}

void PromptClasses::add(const Decision& decision) {
  PromptClass& own = *std::ranges::upper_bound(classes_.begin(), classes_.end() - 1,
                                               decision.tokens, {}, &PromptClass::below);
  ++own.offered;
  own.refused += decision.refused.has_value();
  own.done += decision.is_done();
}

std::vector<PromptClass> PromptClasses::offered() const {
  std::vector<PromptClass> some = classes_;
  std::erase_if(some, [](const PromptClass& each) { return each.offered == 0; });
  return some;
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

OutcomeSum::OutcomeSum(const IterationBubbles& iteration, const std::vector<Served>& served)
    : iteration_{iteration}, served_{served} {
  for (const Served& each : served) rates_.push_back(each.model.highest_flops() / 1e9);
}

void OutcomeSum::add(const Decision& decision) {
  ++sum_.offered;
  classes_.add(decision);
  last_ = std::max(last_, decision.arrival);
  if (decision.refused) {
    ++sum_.refused[static_cast<std::size_t>(*decision.refused)];
    sum_.lacks = std::max(sum_.lacks, decision.lacks);
    return;
  }
  last_ = std::max(last_, decision.end);
  filled_ += static_cast<double>(decision.compute.count());
  if (decision.unfinished) {
    ++sum_.unfinished;
    return;
  }
  const auto& dimensions = served_[decision.model].model.dimensions;
  if (useful_ && dimensions)
    *useful_ += useful_of(*dimensions, rates_[decision.model], decision);
  else
    useful_.reset();
  ++sum_.done;
  sum_.late += decision.misses_slo(served_[decision.model].model);
  sum_.tokens_served += decision.tokens;
  sum_.cached_tokens += decision.cached;
  add_parts(ttft_parts(decision), sum_.parts);
}

Outcome OutcomeSum::of(std::optional<std::int64_t> iterations) const {
  Outcome outcome = sum_;
  const Duration period = iteration_.period;
  if (iterations)
    outcome.iterations = *iterations;
  else if (period > Duration{})
    outcome.iterations = (last_ + period - Duration{1}) / period;
  Utilisation& share = outcome.utilisation;
  share.training = iteration_.busy_ratio();
  const double time = static_cast<double>(period.count()) * iteration_.gpus *
                      static_cast<double>(outcome.iterations);
  if (time > 0) {
    share.prefill = filled_ / time;
    share.total = share.training + share.prefill;
    if (useful_) share.useful = share.training + *useful_ / time;
  }
  outcome.by_length = classes_.offered();
  if (outcome.done == 0) return outcome;
  for (double* const part :
       {&outcome.parts.network, &outcome.parts.decision, &outcome.parts.wait,
        &outcome.parts.compute, &outcome.parts.hop, &outcome.parts.kv, &outcome.parts.first_token})
    *part /= static_cast<double>(outcome.done);
  return outcome;
}

Outcome summarize_decisions(const IterationBubbles& iteration, const std::vector<Served>& served,
                            const std::vector<Decision>& decisions,
                            std::optional<std::int64_t> iterations) {
  OutcomeSum sum{iteration, served};
  std::vector<Duration> ttft;
  for (const Decision& decision : decisions) {
    sum.add(decision);
    if (decision.is_done()) ttft.push_back(decision.ttft());
  }
  Outcome outcome = sum.of(iterations);
  if (ttft.empty()) return outcome;
  std::ranges::sort(ttft);
  outcome.ttft = TimePercentiles{percentile(ttft, 0.5), percentile(ttft, 0.9),
                                 percentile(ttft, 0.99), ttft.back()};
  return outcome;
}

TimeHistogram::TimeHistogram() : counts_(kSteps * (64 - kStepBits), 0) {}

void TimeHistogram::add(Duration time) {
  const auto value = static_cast<std::uint64_t>(std::max(Duration{}, time).count());
  const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kStepBits - 1);
  ++counts_[to_size(shift) * kSteps + (value >> static_cast<unsigned>(shift))];
  max_ = std::max(max_, time);
  ++count_;
}

/// The largest time of the step in which the smallest lies that a share of them does not exceed.
Duration TimeHistogram::percentile(double share) const {
  const auto rank = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_))));
  std::int64_t before = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    before += counts_[i];
    if (before < rank) continue;
    const std::size_t shift = i < 2 * kSteps ? 0 : i / kSteps - 1;
    const std::size_t step = i - shift * kSteps;
    return std::min(max_, Duration{static_cast<std::int64_t>(((step + 1) << shift) - 1)});
  }
  return max_;
}

std::optional<TimePercentiles> TimeHistogram::percentiles() const {
  if (count_ == 0) return std::nullopt;
  return TimePercentiles{percentile(0.5), percentile(0.9), percentile(0.99), max_};
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

bool limits_memory(const Scenario& scenario) {
  return std::ranges::any_of(scenario.memory.capacity,
                             [](const auto& capacity) { return capacity.has_value(); });
}

std::vector<std::string> not_counted(const Scenario& scenario) {
  std::vector<std::string> found;
  if (!limits_memory(scenario) ||
      !std::ranges::all_of(scenario.served,
                           [](const ServedModel& each) { return each.dimensions.has_value(); }))
    found.emplace_back("memory");
  if (!std::ranges::all_of(scenario.served,
                           [](const ServedModel& each) { return each.decode.has_value(); }))
    found.emplace_back("decode");
  return found;
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

int gpus_of_rank(const Scenario& scenario) {
  return scenario.model ? scenario.model->tensor_parallel : 1;
}

}  // namespace longhaul::prefill
