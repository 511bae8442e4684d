#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "planner/tune/surrogate.hpp"
#include "planner/tune/throughput.hpp"

namespace longhaul::planner {

/// What is to be tuned: batches of replicas and the compression rate (StellaTrain, section 4.2).
struct TuneProblem {
  std::vector<GpuSpeed> gpus;       ///< of each replica
  double model_bytes = 0;           ///< m: all gradients, uncompressed
  double lambda = 0;                ///< weight of equation 3 in equation 1
  std::optional<int> most_samples;  ///< a replica's largest batch; none: what the probes cover
};

/// The range that reduces what a choice waits for.
enum class TuneBinding : std::uint8_t { bandwidth, surrogate };

struct TuneChoice {
  std::vector<int> batch;  ///< of each replica
  double compression_rate = 0;
  double seconds = 0;             ///< of an iteration: the slowest replica's
  double g = 0;                   ///< by the surrogate
  double seconds_per_sample = 0;  ///< equation 5: (1 + g) seconds / sum of batches
  double spread = 0;              ///< equation 3: standard deviation of times over their mean
  double objective = 0;           ///< equation 1: equation 5 + lambda x equation 3
  /// bandwidth: the rate is the least that equation 6 allows; surrogate: g is less above it.
  TuneBinding binding = TuneBinding::bandwidth;
};
[[nodiscard]] const char* to_string(TuneBinding binding);

/// Equation 6, for all replicas, so for the fastest: the least rate at which gradients pass the
/// link within an iteration.
[[nodiscard]] double least_rate(const TuneProblem& problem, const std::vector<int>& batch,
                                Bandwidth bandwidth);

/// What a setting is worth, equation 6 left aside. `batch`: of each replica.
[[nodiscard]] TuneChoice choice_at(const TuneProblem& problem, const Surrogate& surrogate,
                                   const std::vector<int>& batch, double rate);
/// The best rate for batches that stay: the least that equation 6 allows, or one of 101 up to 0.999
/// above it.
[[nodiscard]] TuneChoice tune_rate(const TuneProblem& problem, const Surrogate& surrogate,
                                   const std::vector<int>& batch, Bandwidth bandwidth);

/// The best setting: of every time that an iteration can have the six that look best, and what
/// Nelder-Mead makes of the first; of each, whole numbers one by one. Of settings within 0.1% of
/// it, less than probes can tell, the one with the fewest samples. Throws Error where no batch is
/// allowed.
[[nodiscard]] TuneChoice tune(const TuneProblem& problem, const Surrogate& surrogate,
                              Bandwidth bandwidth);

/// Every batch of each kind of GPUs, at its least rate and at 101 rates up to 0.999, which `tune`
/// chooses from, too. Where that is more than 4 million settings: none of one or two kinds; of
/// more, every time of an iteration that one of them can have, the batches as large as fit it,
/// which `tune` may beat.
[[nodiscard]] std::optional<TuneChoice> tune_exhaustively(const TuneProblem& problem,
                                                          const Surrogate& surrogate,
                                                          Bandwidth bandwidth);

}  // namespace longhaul::planner
