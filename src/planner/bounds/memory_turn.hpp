#pragma once

#include <vector>

#include "planner/bounds/relaxation.hpp"

namespace longhaul::planner {

/// When a chunk's k-th F may start at the earliest, because memory is limited.
///
/// Let n be how many activations of the chunk fit. Other chunks on the device are taken to hold
/// nothing. Look at the end of gradient i. By then i gradients and at most i weights have ended
/// before it, so at most n + i Fs have started, and at most i + 1 gradients and i weights have
/// released their memory. F number k needs (k + 1) activations less what was released to fit, and k
/// Fs started and (blocks of a kind take turns) ended. So between the end of gradient i and the
/// start of F k, the device runs at least k - n - i Fs, and gradients and weights that release
/// what is missing; a weight needs its gradient, so of those at most one weight more than
/// gradients. Their least time is `release_time`. It is used for i = k - n and i = k - n - 1.
/// (Where u < i weights had ended, i - u more remain, and their memory is missing as well: leave
/// i - u weights out, among them one that was interrupted, and what is left serves the case u = i.)
///
/// How many of each? With g gradients, the fewest weights that do. Beyond the g that does without
/// weights, more gradients only add time; where gradients release nothing, beyond the number of
/// weights that does. That g is small but has no fixed limit of 2 or 3: a gradient releases the
/// smaller half of an odd activation, so that two of them fall short of one.
///
/// From k to k + 1 with i fixed, one F is added, and one activation more must be released. That
/// takes at least `release_whole` longer: take the cheapest set of blocks for k + 1; without one of
/// its pairs of gradient and weight, or (no weights in it) without two of its gradients, it still
/// serves k. It has such: what is missing exceeds an activation, more than one block releases, and
/// two weights come with a gradient.
class MemoryTurn {
public:
  MemoryTurn(const RelaxedChunk& chunk, Bytes limit);

  /// For k = 0, 1, 2 ... in turn; `gradient_head` holds at least its first k entries.
  [[nodiscard]] Duration earliest_start(std::size_t k, const std::vector<Duration>& gradient_head);

private:
  /// `missing` is at most two activations.
  [[nodiscard]] Duration release_time(Bytes missing) const;

  const RelaxedChunk& chunk_;
  bool limited_ = false;
  std::size_t fitting_ = 0;  ///< n
  Duration after_newest_{};  ///< release_time for i = k - n
  Duration after_next_{};    ///< an F and release_time for i = k - n - 1
  Duration release_whole_{};
  Duration busy_until_{};  ///< of the argument that follows one i from k to k + 1
};

}  // namespace longhaul::planner
