#include "planner/bounds/memory_turn.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::planner {
namespace {

std::int64_t ceil_of(std::int64_t amount, std::int64_t unit) { return (amount + unit - 1) / unit; }

}  // namespace

MemoryTurn::MemoryTurn(const RelaxedChunk& chunk, Bytes limit) : chunk_{chunk} {
  if (chunk.taken <= Bytes{}) return;
  const auto fitting = limit.count() / chunk.taken.count();
  if (fitting < 1) return;  // nothing runs: no bound is wrong
  limited_ = true;
  fitting_ = to_size(fitting);
  const Bytes spare = limit - chunk.taken * fitting;
  after_newest_ = release_time(chunk.rest - spare);
  after_next_ = chunk.forward + release_time(chunk.rest - spare + chunk.taken);
  release_whole_ = chunk.gradient + std::min(chunk.gradient, chunk.weight);
  if (chunk.rest == Bytes{}) release_whole_ = chunk.gradient;
}

Duration MemoryTurn::release_time(Bytes missing) const {
  if (missing <= Bytes{}) return Duration::zero();
  // More gradients than would do without weights, or than weights that would do, only add time.
  const std::int64_t by_gradient = (chunk_.taken - chunk_.rest).count();
  const std::int64_t rest = chunk_.rest.count();
  const std::int64_t most = ceil_of(missing.count(), by_gradient > 0 ? by_gradient : rest);
  Duration least = Duration::max();
  for (std::int64_t gradients = 0; gradients <= most; ++gradients) {
    const std::int64_t left = missing.count() - gradients * by_gradient;
    if (left > 0 && rest == 0) continue;
    const std::int64_t weights = left > 0 ? ceil_of(left, rest) : 0;
    if (weights > gradients + 1) continue;
    least = std::min(least, gradients * chunk_.gradient + weights * chunk_.weight);
  }
  return least;
}

Duration MemoryTurn::earliest_start(std::size_t k, const std::vector<Duration>& gradient_head) {
  if (!limited_ || k < fitting_) return Duration::zero();
  const std::size_t newest = k - fitting_;
  const Duration after_newest = gradient_head[newest] + chunk_.gradient + after_newest_;
  if (newest == 0) return after_newest;
  busy_until_ =
      std::max(gradient_head[newest - 1] + chunk_.gradient + after_next_,
               newest == 1 ? Duration::zero() : busy_until_ + chunk_.forward + release_whole_);
  return std::max(after_newest, busy_until_);
}

}  // namespace longhaul::planner
