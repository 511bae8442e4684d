#include "planner/bounds/release_curve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace longhaul::planner {
namespace {

long double rate(Duration time, Bytes bytes) {
  if (bytes <= Bytes{}) return std::numeric_limits<long double>::infinity();
  return static_cast<long double>(time.count()) / static_cast<long double>(bytes.count());
}

}  // namespace

ReleaseCurve::ReleaseCurve(std::vector<const RelaxedChunk*> chunks, Bytes limit)
    : chunks_{std::move(chunks)}, limit_{limit.count()} {
  forward_rate_ = release_rate_ = std::numeric_limits<long double>::infinity();
  for (const RelaxedChunk* chunk : chunks_) {
    together_ += chunk->taken.count();
    const Bytes by_gradient = chunk->taken - chunk->rest;
    forward_rate_ = std::min(forward_rate_, rate(chunk->forward, chunk->taken));
    release_rate_ = std::min({release_rate_, rate(chunk->gradient, by_gradient),
                              rate(chunk->gradient + chunk->weight, chunk->taken)});
    first_bytes_ = std::max(first_bytes_, by_gradient.count());
  }
  for (const RelaxedChunk* chunk : chunks_) {
    const auto alone = static_cast<long double>(chunk->weight.count());
    spared_ =
        std::max(spared_, static_cast<long double>(chunk->rest.count()) * release_rate_ - alone);
  }
}

void ReleaseCurve::add_gradient(const RelaxedChunk& chunk, Duration head) {
  const Duration end = head + chunk.gradient;
  coming_.emplace(end, (chunk.taken - chunk.rest).count());
  coming_.emplace(end + chunk.weight, chunk.rest.count());
  first_release_ = std::min(first_release_, end);
}

Duration ReleaseCurve::earliest_start(std::int64_t k) {
  const std::int64_t needed = (k + 1) * together_ - limit_;
  if (needed <= 0) return Duration::zero();
  while (released_ < needed && !coming_.empty()) {
    reached_ = coming_.top().first;
    released_ += coming_.top().second;
    coming_.pop();
  }
  if (released_ < needed) return Duration::zero();  // nothing runs: no bound is wrong
  return std::max(reached_, busy_until(k));
}

Duration ReleaseCurve::busy_until(std::int64_t k) const {
  const std::int64_t excess = (k + 1) * together_ - limit_;
  const std::int64_t started = std::max<std::int64_t>(0, excess - chunks_.back()->taken.count());
  const std::int64_t freed = std::max<std::int64_t>(0, excess - first_bytes_);
  const long double work = static_cast<long double>(started) * forward_rate_ +
                           static_cast<long double>(freed) * release_rate_ - spared_;
  if (!(work > 0) || std::isinf(work)) return Duration::zero();
  constexpr long double kRounding = 1e-3;  // of the sum, and more
  return first_release_ + Duration{static_cast<std::int64_t>(std::ceil(work - kRounding))};
}

}  // namespace longhaul::planner
