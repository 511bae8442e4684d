#include "compress/select/candidates.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/random.hpp"
#include "compress/kernels/scan.hpp"
#include "compress/settings.hpp"
#include "compress/sparse_set.hpp"

namespace longhaul::compress {
namespace {

/// Below every score, so that blocks of zeros are found too.
constexpr float kBelowAll = -1;

/// Larger scores first, of equal ones the lower block. Scores are not negative: their bits are in
/// their order.
std::uint64_t key_of(float score, std::uint32_t block) {
  return static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(score)) << 32U | ~block;
}

float score_of(std::uint64_t key) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(key >> 32U));
}

/// Throws for the first number of a scanned stretch that is not finite. Sums that overflow are no
/// mistake.
void require_finite_blocks(const ScanRange& range, int block) {
  const std::size_t first =
      static_cast<std::size_t>(range.first_block) * static_cast<std::size_t>(block);
  require_finite({range.numbers, range.blocks * static_cast<std::size_t>(block)}, first);
}

}  // namespace

void Candidates::start(std::int64_t wanted, std::int64_t all) {
  wanted_ = static_cast<std::size_t>(wanted);
  size_ = 0;
  above_ = 0;
  least_ = 0;
  constexpr std::int64_t kSpare = 4096;
  const auto held = static_cast<std::size_t>(std::min(all, 2 * wanted + kSpare)) + kBlocksAtOnce;
  if (scores_.size() >= held) return;
  scores_.resize(held);
  blocks_.resize(held);
}

void Candidates::scan(const Scanned& scanned, int block, float limit) {
  const std::int64_t whole = scanned.count / block;
  const auto width = static_cast<std::size_t>(block);
  std::int64_t dropped = 0;
  for (std::int64_t first = 0; first < whole;) {
    const std::int64_t blocks = std::min<std::int64_t>(whole - first, kBlocksAtOnce);
    const std::size_t at = static_cast<std::size_t>(first) * width;
    const ScanRange range{scanned.numbers + at, scanned.addend ? scanned.addend + at : nullptr,
                          static_cast<std::size_t>(blocks), static_cast<std::uint32_t>(first)};
    if (size_ + kBlocksAtOnce > scores_.size()) {
      dropped += static_cast<std::int64_t>(size_ - wanted_);
      drop_surplus();
      limit = std::max(limit, least_);
    }
    Found found{scores_.data(), blocks_.data(), size_};
    if (!compress::scan(block, range, limit, found)) require_finite_blocks(range, block);
    size_ = found.size;
    first += blocks;
  }
  const auto at = static_cast<std::size_t>(whole) * width;
  const auto size = static_cast<std::size_t>(scanned.count) - at;
  if (size > 0) {
    if (scanned.addend != nullptr)
      for (std::size_t i = 0; i < size; ++i) scanned.numbers[at + i] += scanned.addend[at + i];
    require_finite({scanned.numbers + at, size}, at);
    const float score = short_block_score(scanned.numbers + at, size, block);
    if (score > limit) {
      scores_[size_] = score;
      blocks_[size_++] = static_cast<std::uint32_t>(whole);
    }
  }
  above_ = static_cast<std::int64_t>(size_) + dropped;
}

/// The key of the last block that is wanted: scores are counted by their leading bits, and only
/// those of one count are put in order.
std::uint64_t Candidates::last_wanted_key() {
  constexpr std::uint32_t kBins = 4096;
  const auto bits_of = [&](std::size_t i) { return std::bit_cast<std::uint32_t>(scores_[i]); };
  std::uint32_t low = bits_of(0), high = low;
  for (std::size_t i = 0; i < size_; ++i) {
    low = std::min(low, bits_of(i));
    high = std::max(high, bits_of(i));
  }
  std::uint32_t shift = 0;
  while (((high - low) >> shift) >= kBins) ++shift;
  std::array<std::uint32_t, kBins> counts{};
  for (std::size_t i = 0; i < size_; ++i) ++counts[(bits_of(i) - low) >> shift];
  std::size_t left = wanted_;
  std::uint32_t bin = kBins - 1;
  for (; counts[bin] < left; --bin) left -= counts[bin];
  keys_.clear();
  for (std::size_t i = 0; i < size_; ++i)
    if ((bits_of(i) - low) >> shift == bin) keys_.push_back(key_of(scores_[i], blocks_[i]));
  const auto last = keys_.begin() + static_cast<std::ptrdiff_t>(left) - 1;
  std::ranges::nth_element(keys_, last, std::greater{});
  return *last;
}

void Candidates::drop_surplus() {
  const std::uint64_t least = last_wanted_key();
  least_ = score_of(least);
  std::size_t left = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const float score = scores_[i];
    const std::uint32_t block = blocks_[i];
    scores_[left] = score;
    blocks_[left] = block;
    left += key_of(score, block) >= least ? 1 : 0;
  }
  size_ = left;
}

std::vector<std::uint32_t> Candidates::best() {
  if (size_ > wanted_) {
    drop_surplus();
  } else {
    const auto end = scores_.begin() + static_cast<std::ptrdiff_t>(size_);
    least_ = size_ == 0 ? 0 : *std::min_element(scores_.begin(), end);
  }
  return {blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(size_)};
}

float sampled_limit(const Scanned& scanned, int block, std::int64_t wanted, std::uint64_t seed) {
  constexpr std::int64_t kSample = 32'768;
  const std::int64_t whole = scanned.count / block;
  if (whole < 4 * kSample) return kBelowAll;
  Random random{seed};
  std::vector<float> scores(kSample);
  const std::int64_t stride = whole / kSample;
  const auto width = static_cast<std::size_t>(block);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::int64_t drawn =
        static_cast<std::int64_t>(i) * stride + random.between(0, stride - 1);
    const std::size_t at = static_cast<std::size_t>(drawn) * width;
    float numbers[16];
    for (std::size_t j = 0; j < width; ++j)
      numbers[j] = scanned.numbers[at + j] + (scanned.addend ? scanned.addend[at + j] : 0);
    scores[i] = short_block_score(numbers, width, block);
  }
  const double expected =
      static_cast<double>(kSample) * static_cast<double>(wanted) / static_cast<double>(whole);
  const auto place = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 4);
  if (place >= scores.size()) return kBelowAll;
  const auto nth = scores.begin() + static_cast<std::ptrdiff_t>(place);
  // What is no number is refused by the scan; here it must only have an order.
  for (float& score : scores)
    if (!(score <= std::numeric_limits<float>::max())) score = 0;
  std::ranges::nth_element(scores, nth, std::greater{});
  return std::nextafter(*nth, kBelowAll);
}

}  // namespace longhaul::compress
