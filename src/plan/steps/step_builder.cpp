#include "plan/steps/step_builder.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::plan {

void StepBuilder::begin_stream(int piece, int track) {
  piece_ = piece;
  track_ = track;
  ++stream_;
  phase_ = next_phase_ = 0;
  phase_number_ = -1;
  left_[at(track)].emplace_back();
  arrivals_.assign(to_size(steps_.members), {});
  last_.assign(to_size(steps_.members), -1);
}

void StepBuilder::begin_phase() {
  phase_ = next_phase_;
  ++phase_number_;
  left_[at(track_)].back().emplace_back(to_size(steps_.members), -1);
}

/// The last message of a member in this phase of the piece so many before; -1: there is none, or
/// the member has begun the phase and waited for it.
std::int32_t StepBuilder::of_earlier_piece(int member) const {
  const auto& pieces = left_[at(track_)];
  const int earlier = piece_ - kPiecesInFlight;
  if (earlier < 0 || pieces.back().back()[at(member)] >= 0) return -1;
  return pieces[at(earlier)][at(phase_number_)][at(member)];
}

/// Of the first `items` shards, in this piece. The first shards have a byte more than the others.
std::int64_t StepBuilder::bytes_before(std::int64_t items) const {
  const std::int64_t shards = steps_.members;
  const auto in_piece = [&](std::int64_t shard) {
    return shard_size(shard_size(size_, shards, shard), steps_.pieces, piece_).count();
  };
  const std::int64_t larger = std::min(items, size_.count() % shards);
  return larger * in_piece(0) + (items - larger) * in_piece(shards - 1);
}

Bytes StepBuilder::size_of(std::span<const ItemRange> items) const {
  const std::int64_t shards = steps_.members;
  std::int64_t bytes = 0;
  for (const ItemRange& range : items) {
    std::int64_t first = range.first;
    while (first < range.end()) {  // an all-to-all has a row of shards for each member
      const std::int64_t row = first / shards * shards;
      const std::int64_t end = std::min<std::int64_t>(range.end(), row + shards);
      bytes += bytes_before(end - row) - bytes_before(first - row);
      first = end;
    }
  }
  return Bytes{bytes};
}

/// Those of steps before `before`; nothing waits for them a second time, for a member's messages
/// follow each other.
void StepBuilder::add_arrivals(StepMessage& message, int before) {
  std::vector<Arrival>& open = arrivals_[at(message.from)];
  message.first_after = static_cast<std::uint32_t>(steps_.after.size());
  for (const Arrival& arrival : open)
    if (arrival.step < before) steps_.after.push_back(arrival.message);
  std::erase_if(open, [&](const Arrival& arrival) { return arrival.step < before; });
  message.after_count = static_cast<std::uint32_t>(steps_.after.size()) - message.first_after;
}

void StepBuilder::send(int from, int to, std::span<const ItemRange> items, int step,
                       StepWaits waits, bool adds) {
  StepMessage message;
  message.from = from;
  message.to = to;
  message.piece = piece_;
  message.stream = stream_;
  message.step = phase_ + step;
  message.left_before = last_[at(from)];
  message.left_of_piece = of_earlier_piece(from);
  message.adds = adds;
  message.size = size_of(items);
  message.first_range = static_cast<std::uint32_t>(steps_.ranges.size());
  message.range_count = static_cast<std::uint32_t>(items.size());
  steps_.ranges.insert(steps_.ranges.end(), items.begin(), items.end());
  add_arrivals(message, waits == StepWaits::steps ? message.step : phase_);
  const auto number = static_cast<std::uint32_t>(steps_.messages.size());
  last_[at(from)] = left_[at(track_)].back().back()[at(from)] = static_cast<std::int32_t>(number);
  arrivals_[at(to)].push_back({number, message.step});
  next_phase_ = std::max(next_phase_, message.step + 1);
  steps_.messages.push_back(message);
}

}  // namespace longhaul::plan
