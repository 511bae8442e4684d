#include "training/replay/replay_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul::training {
namespace {

/// Largest first, of equal ones the lowest.
std::vector<std::size_t> blocks_by_score(const std::vector<float>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return order;
}

std::vector<float> scores_of(std::span<const float> sum, int block) {
  const auto width = static_cast<std::size_t>(block);
  std::vector<float> scores;
  for (std::size_t begin = 0; begin < sum.size(); begin += width)
    scores.push_back(
        replayed_score(sum.subspan(begin, std::min(width, sum.size() - begin)), block));
  return scores;
}

void round_whole_part(std::span<float> numbers, CompressMethod method) {
  if (method == CompressMethod::fp16)
    for (float& number : numbers) number = rounded_to(kHalf, number);
  if (method == CompressMethod::int8) round_to_steps(numbers);
}

}  // namespace

int replayed_block(const GradientCompression& compress) {
  return compress.method == CompressMethod::topk ? 1 : compress.block;
}

std::size_t replayed_blocks(std::size_t count, double share, int block) {
  const auto width = static_cast<std::size_t>(block);
  const std::size_t all = (count + width - 1) / width;
  if (share >= 1 || all == 0) return all;
  const double exact = static_cast<double>(count) * share / block;
  const auto whole = static_cast<std::size_t>(exact * (1 + 1e-12));
  return std::min(all, std::max<std::size_t>(1, whole));
}

float replayed_score(std::span<const float> numbers, int block) {
  std::array<float, 16> tree{};
  for (std::size_t i = 0; i < numbers.size(); ++i) tree[i] = std::abs(numbers[i]);
  for (std::size_t half = static_cast<std::size_t>(block) / 2; half > 0; half /= 2)
    for (std::size_t i = 0; i < half; ++i) tree[i] += tree[i + half];
  return tree[0] * (static_cast<float>(block) / static_cast<float>(numbers.size()));
}

ReplayChooser::ReplayChooser(const GradientCompression& compress, std::size_t count, double share,
                             std::uint64_t seed)
    : compress_{compress},
      block_{replayed_block(compress)},
      count_{count},
      all_{replayed_blocks(count, 1, block_)},
      wanted_{replayed_blocks(count, share, block_)},
      share_{share},
      seed_{seed} {}

void ReplayChooser::set_share(double share) {
  if (share == share_) return;
  share_ = share;
  wanted_ = replayed_blocks(count_, share, block_);
  threshold_ = first_threshold_ = 0;
}

ReplaySet ReplayChooser::take(std::span<float> sum) {
  ReplaySet set{sum.size()};
  ++calls_;
  if (!is_sparse(compress_.method)) {
    std::ranges::fill(set.has, std::uint8_t{1});
    std::ranges::copy(sum, set.numbers.begin());
    round_whole_part(set.numbers, compress_.method);
  } else {
    const auto width = static_cast<std::size_t>(block_);
    for (const std::size_t block : chosen_blocks(sum)) {
      const std::size_t end = std::min(sum.size(), (block + 1) * width);
      for (std::size_t i = block * width; i < end; ++i) set.has[i] = 1;
    }
    for (std::size_t i = 0; i < sum.size(); ++i) set.numbers[i] = set.has[i] != 0 ? sum[i] : 0;
    std::vector<float> values = set.kept();
    round_kept(values, compress_.values);
    auto next = values.begin();
    for (std::size_t i = 0; i < sum.size(); ++i)
      if (set.has[i] != 0) set.numbers[i] = *next++;
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (set.has[i] != 0) sum[i] -= set.numbers[i];
  return set;
}

std::vector<std::size_t> ReplayChooser::chosen_blocks(std::span<const float> sum) {
  if (compress_.method == CompressMethod::randomk) return drawn();
  const std::vector<float> scores = scores_of(sum, block_);
  std::vector<std::size_t> order = blocks_by_score(scores);
  const bool by_threshold = compress_.method == CompressMethod::threshold && wanted_ < all_;
  std::size_t above = wanted_;
  if (by_threshold && threshold_ > 0) {
    const float limit = threshold_ * static_cast<float>(block_);
    above = static_cast<std::size_t>(
        std::ranges::count_if(scores, [&](float score) { return score > limit; }));
    adapt(above);
  } else if (by_threshold && wanted_ > 0) {
    const float least = scores[order[wanted_ - 1]] / static_cast<float>(block_);
    first_threshold_ = threshold_ = std::nextafter(least, 0.0F);
  }
  order.resize(std::min(above, wanted_));
  return order;
}

void ReplayChooser::adapt(std::size_t above) {
  if (above > wanted_) threshold_ = threshold_ + 0.01F * first_threshold_;
  if (above < wanted_) threshold_ = threshold_ * 0.99F;
}

/// The blocks that are kept are drawn, or, where they are more than half, those that are not.
std::vector<std::size_t> ReplayChooser::drawn() const {
  Random random{derived_seed(seed_, calls_)};
  const bool draws_kept = 2 * wanted_ <= all_;
  std::set<std::size_t> drawn;
  while (drawn.size() < (draws_kept ? wanted_ : all_ - wanted_))
    drawn.insert(static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(all_) - 1)));
  std::vector<std::size_t> kept;
  for (std::size_t block = 0; block < all_; ++block)
    if (drawn.contains(block) == draws_kept) kept.push_back(block);
  return kept;
}

}  // namespace longhaul::training
