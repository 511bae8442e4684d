#include "engine/payloads/collective_data_plane.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::engine {

/// At the beginning of a payload.
struct CollectiveDataPlane::Label {
  std::uint32_t run = 0;
  std::int32_t iteration = 0;
  std::uint32_t message = 0;
  std::uint32_t items = 0;
  friend bool operator==(const Label&, const Label&) = default;
};

namespace {

plan::Collective of_size(plan::Collective collective, Bytes size) {
  collective.size = size;
  return collective;
}

/// What the bytes of an item differ by, along its numbers.
std::vector<std::uint8_t> bytes_along(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>((i + 1) * 0x9e3779b97f4a7c15U >> 56U);
  return bytes;
}

}  // namespace

CollectiveDataPlane::CollectiveDataPlane(const SteppedCollective& stepped, Bytes size, Rank self)
    : collective_{of_size(stepped.collective, size)},
      shared_steps_{size == stepped.collective.size ? stepped.steps
                                                    : std::make_shared<const plan::CollectiveSteps>(
                                                          plan::steps_of(collective_))},
      steps_{*shared_steps_},
      words_{(collective_.members.size() + 63) / 64} {
  const auto found = std::ranges::find(collective_.members, self);
  if (found != collective_.members.end()) {
    self_ = static_cast<int>(found - collective_.members.begin());
    along_ = bytes_along(place_of(0, -1).size);
  }
  for (std::uint32_t m = 0; m < steps_.messages.size(); ++m) {
    const plan::StepMessage& message = steps_.messages[m];
    const std::size_t stream = at(message.stream);
    if (own_.size() <= stream) own_.resize(stream + 1);
    if (message.from == self_) own_[stream].push_back(m);
    if (message.from == self_) message_of_[stepped.sends[m]] = m;
    if (message.to == self_) message_of_[stepped.receives[m]] = m;
  }
}

Bytes CollectiveDataPlane::memory_of(const plan::Collective& collective) {
  const bool each_to_each = collective.kind == CollectiveKind::all_to_all;
  return collective.size * (each_to_each ? std::ssize(collective.members) : 1);
}

CollectiveDataPlane::Place CollectiveDataPlane::place_of(std::uint32_t item, int piece) const {
  const auto members = static_cast<std::int64_t>(steps_.members);
  const std::int64_t row = item / members;
  const std::int64_t shard = item % members;
  const std::int64_t all = collective_.size.count();
  const std::int64_t first = row * all + all / members * shard + std::min(shard, all % members);
  const Bytes size = plan::shard_size(collective_.size, members, shard);
  if (piece < 0) return {at(first), at(size.count())};
  const std::int64_t pieces = steps_.pieces;
  const std::int64_t before =
      size.count() / pieces * piece + std::min<std::int64_t>(piece, size.count() % pieces);
  return {at(first + before), at(plan::shard_size(size, pieces, piece).count())};
}

template <typename Visit>
void CollectiveDataPlane::for_each_item(const plan::StepMessage& message, Visit&& visit) const {
  for (const plan::ItemRange& range : steps_.ranges_of(message))
    for (std::uint32_t item = range.first; item < range.end(); ++item)
      visit(item, place_of(item, message.piece));
}

std::size_t CollectiveDataPlane::payload_size(const plan::StepMessage& message) const {
  std::size_t size = sizeof(Label);
  for_each_item(message, [&](std::uint32_t, const Place& place) {
    size += words_ * sizeof(std::uint64_t) + place.size;
  });
  return size;
}

CollectiveDataPlane::Label CollectiveDataPlane::label_of(std::uint32_t message) const {
  std::uint32_t items = 0;
  for (const plan::ItemRange& range : steps_.ranges_of(steps_.messages[message]))
    items += range.count;
  return {run_, iteration_, message, items};
}

std::uint8_t CollectiveDataPlane::mask_of(int member, std::uint32_t item) const {
  const std::uint64_t mixed =
      (to_size(member) + 1) * 0xc2b2ae3d27d4eb4fU ^
      (std::uint64_t{item} + 1) * 0x165667b19e3779f9U ^
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(iteration_)) + 1) *
          0xd6e8feb86659fd93U;
  return static_cast<std::uint8_t>(mixed >> 56U);
}

void CollectiveDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  run_ = run;
  iteration_ = iteration;
  wrong_items_ = 0;
  made_.assign(own_.size(), 0);
  waiting_.clear();
  waiting_.resize(own_.size());
  if (self_ < 0) return;
  numbers_.assign(at(memory_of(collective_).count()), 0);
  holds_.assign(to_size(steps_.pieces) * steps_.items() * words_, 0);
  for (std::uint32_t item = 0; item < steps_.items(); ++item) {
    if (!plan::brings(steps_, self_, item)) continue;
    const Place place = place_of(item, -1);
    const std::uint8_t mask = mask_of(self_, item);
    std::uint8_t* const to = numbers_.data() + place.first;
    for (std::size_t i = 0; i < place.size; ++i) to[i] = along_[i] ^ mask;
    for (int piece = 0; piece < steps_.pieces; ++piece)
      holds_[(at(piece) * steps_.items() + item) * words_ + at(self_) / 64] |= std::uint64_t{1}
                                                                               << (at(self_) % 64);
  }
}

Payload CollectiveDataPlane::room(OpId recv) {
  const auto bytes =
      std::make_shared<std::vector<std::byte>>(payload_size(steps_.messages[message_of_.at(recv)]));
  return {*bytes, bytes};
}

Payload CollectiveDataPlane::make(OpId send) {
  const std::uint32_t number = message_of_.at(send);
  const plan::StepMessage& message = steps_.messages[number];
  Payload payload = room(send);
  std::byte* to = payload.bytes.data();
  const auto append = [&](const void* from, std::size_t size) {
    if (size > 0) std::memcpy(to, from, size);
    to += size;
  };
  const Label label = label_of(number);
  append(&label, sizeof label);
  for_each_item(message, [&](std::uint32_t item, const Place& place) {
    append(holds_.data() + (at(message.piece) * steps_.items() + item) * words_,
           words_ * sizeof(std::uint64_t));
    append(numbers_.data() + place.first, place.size);
  });
  const std::size_t stream = at(message.stream);
  LONGHAUL_ASSERT(own_[stream][made_[stream]] == number, "message {} leaves out of turn", number);
  ++made_[stream];
  put_in_place(message.stream);
  return payload;
}

Payloads::Verdict CollectiveDataPlane::check(OpId recv, std::span<const std::byte> payload,
                                             PayloadId& found) {
  const std::uint32_t number = message_of_.at(recv);
  Label label;
  if (payload.size() >= sizeof label) std::memcpy(&label, payload.data(), sizeof label);
  found.iteration = label.iteration;
  if (label == label_of(number) && payload.size() == payload_size(steps_.messages[number]))
    return Payloads::Verdict::right;
  return Payloads::Verdict::wrong_message;
}

void CollectiveDataPlane::deliver(OpId recv, Payload payload) {
  const std::uint32_t number = message_of_.at(recv);
  const std::int32_t stream = steps_.messages[number].stream;
  waiting_[at(stream)].push_back({number, std::move(payload)});
  put_in_place(stream);
}

/// What came in steps whose own messages are all made.
void CollectiveDataPlane::put_in_place(std::int32_t stream) {
  const auto& own = own_[at(stream)];
  const std::size_t made = made_[at(stream)];
  const std::int32_t next = made < own.size() ? steps_.messages[own[made]].step
                                              : std::numeric_limits<std::int32_t>::max();
  std::erase_if(waiting_[at(stream)], [&](const Arrival& arrival) {
    if (steps_.messages[arrival.message].step >= next) return false;
    put_in_place(arrival);
    return true;
  });
}

void CollectiveDataPlane::put_in_place(const Arrival& arrival) {
  const plan::StepMessage& message = steps_.messages[arrival.message];
  const std::byte* from = arrival.payload.bytes.data() + sizeof(Label);
  bool right = true;
  for_each_item(message, [&](std::uint32_t item, const Place& place) {
    std::uint64_t* mine = holds_.data() + (at(message.piece) * steps_.items() + item) * words_;
    for (std::size_t word = 0; word < words_; ++word, from += sizeof(std::uint64_t)) {
      std::uint64_t theirs = 0;
      std::memcpy(&theirs, from, sizeof theirs);
      right = right && (message.adds ? (mine[word] & theirs) == 0 : (mine[word] & ~theirs) == 0);
      mine[word] |= theirs;
    }
    std::uint8_t* const to = numbers_.data() + place.first;
    if (message.adds) {
      for (std::size_t i = 0; i < place.size; ++i)
        to[i] = static_cast<std::uint8_t>(to[i] + std::to_integer<std::uint8_t>(from[i]));
    } else if (place.size > 0) {
      std::memcpy(to, from, place.size);
    }
    from += place.size;
  });
  if (!right) ++wrong_items_;
}

bool CollectiveDataPlane::is_right(std::uint32_t item) const {
  std::array<std::uint8_t, 256> sums{};  // by the byte along
  std::vector<std::uint64_t> expected_set(words_, 0);
  for (int member = 0; member < steps_.members; ++member) {
    if (!plan::brings(steps_, member, item)) continue;
    const std::uint8_t mask = mask_of(member, item);
    for (std::size_t byte = 0; byte < sums.size(); ++byte)
      sums[byte] = static_cast<std::uint8_t>(sums[byte] + (byte ^ mask));
    expected_set[at(member) / 64] |= std::uint64_t{1} << (at(member) % 64);
  }
  for (int piece = 0; piece < steps_.pieces; ++piece) {
    const auto held =
        holds_.begin() + static_cast<std::ptrdiff_t>((at(piece) * steps_.items() + item) * words_);
    if (!std::equal(expected_set.begin(), expected_set.end(), held)) return false;
  }
  const Place place = place_of(item, -1);
  for (std::size_t i = 0; i < place.size; ++i)
    if (numbers_[place.first + i] != sums[along_[i]]) return false;
  return true;
}

std::vector<LateVerdict> CollectiveDataPlane::end_iteration() {
  if (self_ < 0) return {};
  for (std::uint32_t item = 0; item < steps_.items(); ++item)
    if (plan::gets(steps_, self_, item) && !is_right(item)) ++wrong_items_;
  return {};
}

void CollectiveDataPlane::corrupt(OpId /*send*/, FaultKind /*how*/, Payload& payload) {
  payload.bytes.back() ^= std::byte{1};
}

comm::Exchange CollectiveDataPlane::exchange(OpId collective) {
  LONGHAUL_ASSERT(false, "op {} is one call, not messages", index(collective));
}

bool CollectiveDataPlane::exchanged(OpId collective) {
  LONGHAUL_ASSERT(false, "op {} is one call, not messages", index(collective));
}

}  // namespace longhaul::engine
