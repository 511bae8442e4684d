#include "planner/bounds/split_tail.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/index.hpp"

namespace longhaul::planner {
namespace {

long double nanoseconds(Duration time) { return static_cast<long double>(time.count()); }

/// A chunk on the device.
struct Here {
  const RelaxedChunk* chunk = nullptr;
  Duration first_forward, first_gradient;
  Duration after;  ///< at least, from the end of its last gradient to that of the iteration
};

class SplitTail {
public:
  SplitTail(std::vector<Here> here, Bytes limit) : here_{std::move(here)}, begin_{begin(limit)} {}

  [[nodiscard]] Duration bound() const {
    long double longest = 0;
    Duration whole{};
    for (const Here& from : here_) {
      longest = std::max({longest, with(from.after, 0), with(from.after, 1)});
      for (const Here& priced : here_) {
        const RelaxedChunk& chunk = *priced.chunk;
        if (has_price(chunk))
          longest = std::max(longest, with(from.after, nanoseconds(saved_by_backward(chunk)) /
                                                           nanoseconds(chunk.wgrad)));
      }
      if (has_one_price()) whole = std::max(whole, with_whole_splits(from.after));
    }
    constexpr long double kRounding = 1e-3;  // of the sum, and more
    return std::max(whole, Duration{static_cast<std::int64_t>(std::ceil(longest - kRounding))});
  }

private:
  /// r of the header.
  [[nodiscard]] Duration begin(Bytes limit) const {
    Duration forward = Duration::max();
    Duration gradient = Duration::max();
    for (const Here& h : here_) {
      forward = std::min(forward, h.first_forward);
      gradient = std::min(gradient, h.first_gradient);
    }
    return std::max(forward, gradient - work_within(limit));
  }

  /// The longest that Fs and their Rs can take that fit into the memory together: parts of blocks
  /// are taken to fit, so that those which take longest for their memory are the best.
  [[nodiscard]] Duration work_within(Bytes limit) const {
    std::int64_t unit = 0;
    for (const Here& h : here_) unit = std::gcd(unit, h.chunk->taken.count());
    if (unit == 0 || limit < Bytes{}) return Duration::max() / 2;
    auto left = static_cast<long double>(limit.count() / unit * unit);
    std::vector<const RelaxedChunk*> chunks;
    for (const Here& h : here_) chunks.push_back(h.chunk);
    std::ranges::sort(chunks, [](const RelaxedChunk* a, const RelaxedChunk* b) {
      return work_of(*a) * taken(*b) > work_of(*b) * taken(*a);
    });
    long double work = 0;
    for (const RelaxedChunk* chunk : chunks) {
      const long double all = chunk->count * taken(*chunk);
      const long double share = all > left ? left / all : 1;
      work += share * chunk->count * work_of(*chunk);
      left -= share * all;
    }
    return Duration{static_cast<std::int64_t>(std::ceil(work))};
  }
  static long double work_of(const RelaxedChunk& chunk) {
    return nanoseconds(chunk.forward + chunk.recompute);
  }
  static long double taken(const RelaxedChunk& chunk) {
    return static_cast<long double>(chunk.taken.count());
  }

  /// q and p of the header.
  [[nodiscard]] long double with(Duration tail, long double price) const {
    const long double rest = 1 - price;
    Duration reduction = Duration::max();
    long double sum = nanoseconds(begin_) + price * nanoseconds(tail);
    for (const Here& h : here_) {
      const RelaxedChunk& chunk = *h.chunk;
      const long double split = nanoseconds(chunk.dgrad), fused = nanoseconds(chunk.backward);
      const long double weight = nanoseconds(chunk.wgrad);
      const long double each = h.after >= tail
                                   ? work_of(chunk) + std::min(fused, split + rest * weight)
                                   : rest * (work_of(chunk) + std::min(fused, split + weight));
      sum += chunk.count * each;
      reduction = std::min(reduction, chunk.reduction);
    }
    return sum + rest * nanoseconds(reduction);
  }

  static Duration saved_by_backward(const RelaxedChunk& chunk) {
    return chunk.dgrad + chunk.wgrad - chunk.backward;
  }
  static bool has_price(const RelaxedChunk& chunk) {
    return saved_by_backward(chunk) > Duration::zero() && chunk.backward > chunk.dgrad;
  }

  /// Does it cost the same to split any of the backward passes?
  [[nodiscard]] bool has_one_price() const {
    const RelaxedChunk& one = *here_.front().chunk;
    return has_price(one) && std::ranges::all_of(here_, [&](const Here& h) {
             return h.chunk->dgrad == one.dgrad && h.chunk->wgrad == one.wgrad &&
                    h.chunk->backward == one.backward;
           });
  }

  /// The least over s of the header. Needs has_one_price().
  [[nodiscard]] Duration with_whole_splits(Duration tail) const {
    const RelaxedChunk& one = *here_.front().chunk;
    const Duration saved = saved_by_backward(one);
    Duration reduction = Duration::max();
    Duration all = begin_;
    Duration ahead = begin_ + tail;
    std::int64_t most = 0;
    for (const Here& h : here_) {
      const RelaxedChunk& chunk = *h.chunk;
      const Duration work = chunk.count * (chunk.forward + chunk.recompute + chunk.backward);
      all += work;
      if (h.after >= tail) ahead += work;
      if (h.after >= tail) most += chunk.count;
      reduction = std::min(reduction, chunk.reduction);
    }
    all += reduction;
    if (ahead <= all) return all;
    const std::int64_t below = std::min(most, (ahead - all) / one.wgrad);
    const Duration with_fewer = ahead - below * (one.wgrad - saved);
    return below == most ? with_fewer : std::min(with_fewer, all + (below + 1) * saved);
  }

  std::vector<Here> here_;
  Duration begin_;
};

}  // namespace

Duration split_tail_bound(const Relaxation& relaxation, const RelaxedReplica& replica,
                          const std::vector<StageTimes>& times, DeviceId device) {
  std::vector<Here> here;
  for (std::size_t c = 0; c < replica.chunks.size(); ++c) {
    const RelaxedChunk& chunk = replica.chunks[c];
    if (chunk.device != device || chunk.count == 0) continue;
    const bool first = c % at(relaxation.chunks_of_copy) == 0;
    here.push_back({&chunk, times[c].forward_head.front(), times[c].gradient_head.front(),
                    first ? Duration::zero()
                          : chunk.previous.transfer + chunk.previous.latency +
                                times[c - 1].gradient_tail.back()});
  }
  if (here.empty()) return Duration::zero();
  return SplitTail{std::move(here), relaxation.limit}.bound();
}

}  // namespace longhaul::planner
