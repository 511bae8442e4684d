#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "planner/bounds/relaxation.hpp"

namespace longhaul::planner {

/// When the k-th F of a chunk may start at the earliest, because of the memory of the chunks
/// before it on its device as well. With C the chunk and those before it, H the sum of their
/// activations: when F k of the chunk starts, k + 1 Fs of each of C have started, so (k + 1) H less
/// what C has released fits into the limit. Two consequences:
///  - No activation is released before the head of its gradient and its weight allow, and only
///    those of k microbatches can be. The earliest time at which that suffices is a head.
///  - Nothing is released before the first gradient of C ends, so until then Fs of at most the
///    limit have started. It is one of the last chunk of C, since those of the others need one of
///    it, so that no other gradient and no weight of C has run by then. The Fs beyond the limit and
///    what must be released keep the device busy from then on, at no less than the cheapest rate of
///    time to memory: of a gradient, or of a gradient and a weight, since all weights but one need
///    a gradient that runs from then on.
class ReleaseCurve {
public:
  /// `chunks`: C in ascending order; they must live as long as this.
  ReleaseCurve(std::vector<const RelaxedChunk*> chunks, Bytes limit);

  /// For k = 0, 1, 2 ... in turn, each before the gradients of number k are added.
  [[nodiscard]] Duration earliest_start(std::int64_t k);
  /// The next gradient of a chunk of C starts no earlier than `head`.
  void add_gradient(const RelaxedChunk& chunk, Duration head);

private:
  [[nodiscard]] Duration busy_until(std::int64_t k) const;

  using Release = std::pair<Duration, std::int64_t>;  ///< when, bytes
  std::vector<const RelaxedChunk*> chunks_;
  std::int64_t limit_ = 0;
  std::int64_t together_ = 0;  ///< H
  std::priority_queue<Release, std::vector<Release>, std::greater<>> coming_;
  std::int64_t released_ = 0;
  Duration reached_{};  ///< when `released_` bytes can have been released
  Duration first_release_ = Duration::max();
  long double forward_rate_ = 0;  ///< ns a byte
  long double release_rate_ = 0;
  long double spared_ = 0;        ///< ns that that one weight may save
  std::int64_t first_bytes_ = 0;  ///< that the first gradient may release
};

}  // namespace longhaul::planner
