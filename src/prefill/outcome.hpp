#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "prefill/bounds.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// Shares of GPUs x wall time of a stretch of whole iterations.
struct Utilisation {
  double training = 0;
  double prefill = 0;
  double total = 0;
  /// Training, and of prefill the time of its FLOPs at the highest rate that the profile reaches;
  /// nullopt where a served model has no dimensions.
  std::optional<double> useful{};
};

/// How many prompts of a class of length were offered, answered and refused.
struct PromptClass {
  std::int64_t below = std::numeric_limits<std::int64_t>::max();  ///< tokens; max(): the longest
  std::int64_t offered = 0, done = 0, refused = 0;
  [[nodiscard]] bool is_longest() const {
    return below == std::numeric_limits<std::int64_t>::max();
  }
};
/// Below 128, 256, ... 8192 tokens, and longer ones, without classes that no request is of.
[[nodiscard]] std::vector<PromptClass> prompt_classes(const std::vector<Decision>& decisions);

/// prompt_classes() one after the other.
class PromptClasses {
public:
  PromptClasses();
  void add(const Decision& decision);
  [[nodiscard]] std::vector<PromptClass> offered() const;

private:
  std::vector<PromptClass> classes_;
};

/// Of what was answered: smallest times that so many do not exceed.
struct TimePercentiles {
  Duration p50{}, p90{}, p99{}, max{};
};

/// What became of the requests, and of the GPUs' time.
struct Outcome {
  std::int64_t iterations = 0;  ///< of the stretch
  Utilisation utilisation;
  std::int64_t offered = 0, done = 0, tokens_served = 0;
  std::array<std::int64_t, every<RefusalReason>().size()> refused{};
  std::vector<PromptClass> by_length;     ///< prompt_classes()
  std::int64_t unfinished = 0;            ///< whose last pass the stretch's end cut off
  std::int64_t late = 0;                  ///< of `done`: Decision::misses_slo()
  std::int64_t cached_tokens = 0;         ///< of `tokens_served`: not computed again
  std::optional<TimePercentiles> ttft{};  ///< from arrival to the first token; nullopt: none
  /// Means over `done` of the parts of TTFT, which add up to it.
  struct Parts {
    double network = 0, decision = 0, wait = 0, compute = 0, hop = 0, kv = 0, first_token = 0;
  } parts;
  Bytes lacks{};  ///< the most that a request refused as `memory` lacked

  /// For whatever reason: `offered` is `done`, these and `unfinished`.
  [[nodiscard]] std::int64_t all_refused() const {
    return std::accumulate(refused.begin(), refused.end(), std::int64_t{0});
  }
};

/// The parts of one answer's TTFT, to the nanosecond. Of a prompt in several passes `wait` counts
/// the time between them, too.
struct TtftParts {
  Duration network{}, decision{}, wait{}, compute{}, hop{}, kv{}, first_token{};
  [[nodiscard]] Duration sum() const {
    return network + decision + wait + compute + hop + kv + first_token;
  }
};
[[nodiscard]] TtftParts ttft_parts(const Decision& decision);

/// Has a device a capacity?
[[nodiscard]] bool limits_memory(const Scenario& scenario);

/// What no answer for the scenario counts: "memory", without a capacity or a model's dimensions,
/// and "decode", without a model's: keys, values and the first token.
[[nodiscard]] std::vector<std::string> not_counted(const Scenario& scenario);

/// `iterations`: of a backlog's stretch; nullopt, an open loop: as many as it takes until the last
/// request has arrived and the last prefill has ended.
[[nodiscard]] Outcome summarize_decisions(const IterationBubbles& iteration,
                                          const std::vector<Served>& served,
                                          const std::vector<Decision>& decisions,
                                          std::optional<std::int64_t> iterations);

/// The same of decisions one after the other, which it does not keep: all but `ttft`. Both live as
/// long.
class OutcomeSum {
public:
  OutcomeSum(const IterationBubbles& iteration, const std::vector<Served>& served);
  void add(const Decision& decision);
  [[nodiscard]] Outcome of(std::optional<std::int64_t> iterations) const;

private:
  const IterationBubbles& iteration_;
  const std::vector<Served>& served_;
  Outcome sum_{};
  PromptClasses classes_;
  std::vector<double> rates_;  ///< by model: the highest, FLOPs a ns; 0: it has no dimensions
  Duration last_{1};           ///< arrival or end
  double filled_ = 0;
  std::optional<double> useful_ = 0;
};

/// Times of any number, in constant memory: percentiles are at most kError above the exact ones.
class TimeHistogram {
public:
  static constexpr int kStepBits = 8;
  static constexpr double kError = 1.0 / (1 << kStepBits);  ///< of a time
  TimeHistogram();
  void add(Duration time);
  /// nullopt: there was none.
  [[nodiscard]] std::optional<TimePercentiles> percentiles() const;

private:
  static constexpr std::size_t kSteps = std::size_t{1} << kStepBits;
  [[nodiscard]] Duration percentile(double share) const;

  std::vector<std::int64_t> counts_;  ///< kSteps to each doubling
  std::int64_t count_ = 0;
  Duration max_{};
};

/// What prefill in bubbles is worth beside GPUs of its own, in $.
struct PrefillCost {
  double gpu_hour = 0;
  double gpus_saved = 0;             ///< GPUs that would answer the same prompts, always busy
  double training_delay = 0;         ///< all GPUs of training, for as long as it is delayed
  double per_million_bubbles = 0;    ///< training's delay over 10^6 tokens that were answered
  double per_million_dedicated = 0;  ///< GPUs of their own, always busy
  double break_even_price = 0;       ///< of 10^6 tokens: from there on they pay for the delay
};

/// nullopt: nothing was answered. `wall`: of the stretch; `delay`: of training in it.
[[nodiscard]] std::optional<PrefillCost> prefill_cost(const std::vector<Served>& served,
                                                      const std::vector<Decision>& decisions,
                                                      int gpus, double gpu_hour, Duration wall,
                                                      Duration delay);

/// $ per GPU and hour, the mean over training's GPUs; nullopt where a datacenter has no price.
[[nodiscard]] std::optional<double> gpu_hour_of(const Scenario& scenario);
/// A rank of several computes a prompt on one of them, which costs as the others do.
[[nodiscard]] int gpus_of_rank(const Scenario& scenario);

}  // namespace longhaul::prefill
