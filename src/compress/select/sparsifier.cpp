#include "compress/select/sparsifier.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/kept_share.hpp"
#include "base/random.hpp"
#include "compress/wire/values.hpp"

namespace longhaul::compress {
namespace {

/// Blocks from 0 to all - 1, each as likely as the others; ascending.
std::vector<std::uint32_t> drawn_blocks(std::int64_t wanted, std::int64_t all, std::uint64_t seed) {
  Random random{seed};
  std::vector<std::uint32_t> drawn;
  drawn.reserve(static_cast<std::size_t>(wanted));
  while (drawn.size() < static_cast<std::size_t>(wanted)) {
    while (drawn.size() < static_cast<std::size_t>(wanted))
      drawn.push_back(static_cast<std::uint32_t>(random.between(0, all - 1)));
    std::ranges::sort(drawn);
    drawn.erase(std::unique(drawn.begin(), drawn.end()), drawn.end());
  }
  return drawn;
}

std::vector<std::uint32_t> all_but(const std::vector<std::uint32_t>& left, std::int64_t all) {
  std::vector<std::uint32_t> rest;
  auto next = left.begin();
  for (std::uint32_t block = 0; block < static_cast<std::uint32_t>(all); ++block)
    if (next != left.end() && *next == block)
      ++next;
    else
      rest.push_back(block);
  return rest;
}

/// Only adds: where all is kept no block is looked for.
void add_all(const Scanned& scanned) {
  const auto size = static_cast<std::size_t>(scanned.count);
  if (scanned.addend != nullptr)
    for (std::size_t i = 0; i < size; ++i) scanned.numbers[i] += scanned.addend[i];
  require_finite({scanned.numbers, size});
}

/// A set with room for the values of its blocks.
SparseSet with_room(std::size_t count, int block, std::vector<std::uint32_t> blocks) {
  SparseSet set{static_cast<std::int64_t>(count), block, std::move(blocks), {}};
  const auto width = static_cast<std::size_t>(block);
  std::size_t size = set.blocks.size() * width;
  if (!set.blocks.empty()) size -= width - set.size_of(set.blocks.back());
  set.values.resize(size);
  return set;
}

/// Calls `take`(place in the vector, place in the values, numbers) for each block, after it was
/// sent for from memory.
template <typename Take>
void each_block_ahead(const SparseSet& set, const float* numbers, Take take) {
  constexpr std::size_t kAhead = 24;
  const auto width = static_cast<std::size_t>(set.block);
  for (std::size_t i = 0; i < set.blocks.size(); ++i) {
    const std::size_t ahead = std::min(i + kAhead, set.blocks.size() - 1);
    __builtin_prefetch(numbers + set.blocks[ahead] * width, 1);
    take(set.blocks[i] * width, i * width, set.size_of(set.blocks[i]));
  }
}

/// The values of blocks.
SparseSet gathered(std::span<const float> numbers, int block, std::vector<std::uint32_t> blocks) {
  SparseSet set = with_room(numbers.size(), block, std::move(blocks));
  each_block_ahead(set, numbers.data(), [&](std::size_t place, std::size_t at, std::size_t size) {
    std::copy_n(numbers.data() + place, size, set.values.data() + at);
  });
  return set;
}

/// The values of blocks, which are then zero.
SparseSet moved_out(std::span<float> numbers, int block, std::vector<std::uint32_t> blocks) {
  SparseSet set = with_room(numbers.size(), block, std::move(blocks));
  each_block_ahead(set, numbers.data(), [&](std::size_t place, std::size_t at, std::size_t size) {
    std::copy_n(numbers.data() + place, size, set.values.data() + at);
    std::fill_n(numbers.data() + place, size, 0.0F);
  });
  return set;
}

}  // namespace

float adapted_threshold(const SparsifierState& state, std::int64_t above, std::int64_t wanted) {
  if (above > wanted) return state.threshold + 0.01F * state.first_threshold;
  if (above < wanted) return state.threshold * 0.99F;
  return state.threshold;
}

Sparsifier::Sparsifier(const Settings& settings, std::int64_t count, const SparsifierState& state)
    : settings_{settings}, count_{count}, state_{state} {
  check(settings);
  if (count < 0 || count > kMostNumbers)
    fail("a vector of {} numbers (at most {} have places of 32 bits). Divide it.", count,
         kMostNumbers);
  wanted_ = blocks_to_keep(count, settings.keep, settings.block);
}

void Sparsifier::set_keep(double keep) {
  if (keep == settings_.keep) return;
  settings_.keep = keep;
  check(settings_);
  wanted_ = blocks_to_keep(count_, keep, settings_.block);
  state_.threshold = state_.first_threshold = 0;
}

SparseSet Sparsifier::take(std::span<float> sum) {
  return send(sum, choose({sum.data(), nullptr, static_cast<std::int64_t>(sum.size())}));
}

SparseSet Sparsifier::take(std::span<const float> gradient, std::span<float> residual) {
  LONGHAUL_ASSERT(gradient.size() == residual.size(), "{} and {}", gradient.size(),
                  residual.size());
  const auto count = static_cast<std::int64_t>(residual.size());
  return send(residual, choose({residual.data(), gradient.data(), count}));
}

SparseSet Sparsifier::take_without_feedback(std::span<const float> gradient) {
  // Without an addend the scan only reads.
  float* const numbers = const_cast<float*>(gradient.data());  // NOLINT
  auto blocks = choose({numbers, nullptr, static_cast<std::int64_t>(gradient.size())});
  SparseSet set = gathered(gradient, settings_.block, std::move(blocks));
  round_values(set.values, settings_.values);
  return set;
}

std::vector<std::uint32_t> Sparsifier::choose(Scanned scanned) {
  LONGHAUL_ASSERT(scanned.count == count_, "{} numbers instead of {}", scanned.count, count_);
  ++state_.calls;
  last_threshold_ = 0;
  const std::int64_t all = blocks_in(count_, settings_.block);
  if (settings_.method == Method::randomk) return choose_at_random(scanned);
  if (wanted_ == all) {
    add_all(scanned);
    std::vector<std::uint32_t> blocks(static_cast<std::size_t>(all));
    std::iota(blocks.begin(), blocks.end(), 0U);
    return blocks;
  }
  candidates_.start(wanted_, all);
  if (settings_.method == Method::threshold && state_.threshold > 0)
    return choose_above_threshold(scanned);
  auto blocks = choose_exactly(scanned);
  // Just below the least block, which is then above it.
  if (settings_.method == Method::threshold)
    state_.first_threshold = state_.threshold = std::nextafter(last_threshold_, 0.0F);
  return blocks;
}

std::vector<std::uint32_t> Sparsifier::choose_exactly(Scanned scanned) {
  const std::uint64_t seed = derived_seed(settings_.seed, state_.calls);
  candidates_.scan(scanned, settings_.block,
                   sampled_limit(scanned, settings_.block, wanted_, seed));
  if (candidates_.above() < wanted_) {  // the sample misled
    scanned.addend = nullptr;
    candidates_.start(wanted_, blocks_in(count_, settings_.block));
    candidates_.scan(scanned, settings_.block, -1);
  }
  auto blocks = candidates_.best();
  last_threshold_ = candidates_.least() / static_cast<float>(settings_.block);
  return blocks;
}

std::vector<std::uint32_t> Sparsifier::choose_above_threshold(const Scanned& scanned) {
  last_threshold_ = state_.threshold;
  candidates_.scan(scanned, settings_.block,
                   state_.threshold * static_cast<float>(settings_.block));
  state_.threshold = adapted_threshold(state_, candidates_.above(), wanted_);
  return candidates_.best();
}

std::vector<std::uint32_t> Sparsifier::choose_at_random(const Scanned& scanned) const {
  add_all(scanned);
  const std::int64_t all = blocks_in(count_, settings_.block);
  const std::uint64_t seed = derived_seed(settings_.seed, state_.calls);
  if (2 * wanted_ <= all) return drawn_blocks(wanted_, all, seed);
  return all_but(drawn_blocks(all - wanted_, all, seed), all);
}

SparseSet Sparsifier::send(std::span<float> sum, std::vector<std::uint32_t> blocks) const {
  if (settings_.values == ValueFormat::f32)
    return moved_out(sum, settings_.block, std::move(blocks));
  SparseSet set = gathered(sum, settings_.block, std::move(blocks));
  round_values(set.values, settings_.values);
  each_block(set, [&](std::size_t place, std::size_t at, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) sum[place + i] -= set.values[at + i];
  });
  return set;
}

}  // namespace longhaul::compress
