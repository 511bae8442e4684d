#include "sim/events/live_iterations.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::sim {

LiveIterations::LiveIterations(const Plan& plan, int reach, Notes notes, int first)
    : ops_{plan.ops.size()}, reach_{reach}, notes_{notes}, oldest_{first}, handed_{first} {
  shift_ = static_cast<std::uint32_t>(std::bit_width(std::max<std::size_t>(ops_, 1) - 1));
  mask_ = static_cast<std::uint32_t>((std::uint64_t{1} << shift_) - 1);
}

void LiveIterations::add_slot() {
  const std::size_t slot = slots_.size();
  const std::size_t begin = slot << shift_;
  if (begin + ops_ >= kNoWaiter)
    fail("too many ops are in flight ({} iterations of {}). Let iterations wait for each other.",
         slot + 1, ops_);
  slots_.emplace_back();
  unused_.push_back(static_cast<std::uint32_t>(slot));
  times.resize(begin + ops_);
  if (notes_ == Notes::none) return;
  next_waiter.resize(begin + ops_);
  stages.resize(begin + ops_);
  outcomes.resize(begin + ops_);
  versions.resize(begin + ops_);
}

void LiveIterations::clear(std::size_t slot) {
  const auto begin = static_cast<std::ptrdiff_t>(slot << shift_);
  const auto end = begin + static_cast<std::ptrdiff_t>(ops_);
  const auto fill = [&](auto& records, const auto& value) {
    std::fill(records.begin() + begin, records.begin() + end, value);
  };
  fill(times, OpTime{kPending, Duration{kNoWaiter}, kPending});
  if (notes_ == Notes::none) return;
  fill(next_waiter, kNoWaiter);
  fill(stages, Stage::away);
  fill(outcomes, Outcome::ran);
  fill(versions, -1);
}

std::uint32_t LiveIterations::open(int iteration) {
  while (!is_open(iteration)) {
    if (unused_.empty()) add_slot();
    const std::uint32_t slot = unused_.back();
    unused_.pop_back();
    clear(slot);
    slots_[slot] = {oldest_ + static_cast<int>(live_.size()), ops_};
    live_.push_back(slot);
  }
  return base_of(iteration);
}

OpResults LiveIterations::copy_of(std::size_t slot) const {
  const auto part_of = [&]<typename T>(const std::vector<T>& records) {
    if (records.empty()) return std::vector<T>{};
    const auto begin = records.begin() + static_cast<std::ptrdiff_t>(slot << shift_);
    return std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(ops_));
  };
  return {part_of(times), part_of(outcomes), part_of(versions)};
}

LiveIterations::Complete LiveIterations::take() {
  Complete complete{handed_, copy_of(live_[to_size(handed_ - oldest_)])};
  ++handed_;
  while (oldest_ + reach_ < handed_) {
    unused_.push_back(live_.front());
    live_.pop_front();
    ++oldest_;
  }
  return complete;
}

OpResults LiveIterations::take_only() {
  return {std::move(times), std::move(outcomes), std::move(versions)};
}

}  // namespace longhaul::sim
