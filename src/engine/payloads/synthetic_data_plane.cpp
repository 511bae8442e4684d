#include "engine/payloads/synthetic_data_plane.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/index.hpp"
#include "base/random.hpp"

namespace longhaul::engine {
SyntheticDataPlane::SyntheticDataPlane(const Plan& plan, Rank self, std::uint64_t seed,
                                       Bytes largest, Bytes vector)
    : plan_{plan},
      self_{self},
      seed_{seed},
      payloads_{seed, largest_payload(plan, largest)},
      forwards_{plan, self},
      rooms_{std::make_shared<Rooms>()} {
  for (const SteppedCollective& each : plan.stepped) {
    const bool member = std::ranges::binary_search(each.collective.members, self);
    in_steps_.push_back(member ? std::make_unique<CollectiveDataPlane>(
                                     each, kept_vector(each, {largest, vector}), self)
                               : nullptr);
  }
}

CollectiveDataPlane* SyntheticDataPlane::plane_of(OpId message) const {
  const Op& op = plan_.op(message);
  return is_step(op) ? in_steps_[stepped_of(op)].get() : nullptr;
}

SyntheticDataPlane::~SyntheticDataPlane() = default;

/// What the lanes that send large payloads send first is made before the ranks meet.
void SyntheticDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  worker_.finish();
  run_ = run;
  iteration_ = iteration;
  for (const auto& plane : in_steps_)
    if (plane) plane->begin_iteration(run, iteration);
  late_.clear();
  received_.clear();
  for (auto& [lane, ahead] : ahead_) {
    ahead.clear();
    make_ahead(lane, static_cast<std::uint32_t>(index(plan_.lanes[index(lane)].first)));
  }
  worker_.finish();
}

std::vector<LateVerdict> SyntheticDataPlane::end_iteration() {
  worker_.finish();
  std::vector<LateVerdict> wrong = std::exchange(late_, {});
  append_wrong_sums(wrong);
  return wrong;
}

/// Which message brought a wrong number is not known: the last that came is named.
void SyntheticDataPlane::append_wrong_sums(std::vector<LateVerdict>& wrong) {
  for (std::size_t c = 0; c < in_steps_.size(); ++c) {
    CollectiveDataPlane* const plane = in_steps_[c].get();
    if (plane == nullptr) continue;
    (void)plane->end_iteration();
    if (plane->wrong_items() == 0) continue;
    const SteppedCollective& stepped = plan_.stepped[c];
    const auto own = std::ranges::lower_bound(stepped.collective.members, self_) -
                     stepped.collective.members.begin();
    for (std::size_t m = stepped.receives.size(); m-- > 0;) {
      if (stepped.steps->messages[m].to != own) continue;
      const OpId recv = stepped.receives[m];
      wrong.push_back({recv, Payloads::Verdict::corrupted,
                       payload_id(plan_, OpId{plan_.op(recv).match}, run_, iteration_)});
      break;
    }
  }
}

void SyntheticDataPlane::deliver(OpId recv, Payload payload) {
  if (CollectiveDataPlane* const plane = plane_of(recv)) plane->deliver(recv, std::move(payload));
}

Payload SyntheticDataPlane::take_room(std::size_t size) {
  std::unique_ptr<Room> room;
  {
    const std::scoped_lock lock{rooms_->mutex};
    const auto found = std::ranges::find_if(
        rooms_->free, [&](const std::unique_ptr<Room>& free) { return free->size >= size; });
    if (found != rooms_->free.end()) {
      room = std::move(*found);
      rooms_->free.erase(found);
    }
  }
  if (!room) {
    room = std::make_unique<Room>();
    room->size = size;
    room->memory = std::make_unique_for_overwrite<std::byte[]>(size);
  }
  const std::span<std::byte> bytes{room->memory.get(), size};
  const auto give_back = [rooms = rooms_](Room* used) {
    const std::scoped_lock lock{rooms->mutex};
    rooms->free.push_back(std::unique_ptr<Room>{used});
  };
  return {bytes, std::shared_ptr<Room>{room.release(), give_back}};
}

Payload SyntheticDataPlane::make(OpId send) {
  if (CollectiveDataPlane* const plane = plane_of(send)) return plane->make(send);
  const std::size_t size = payloads_.bytes_for(plan_.op(send).size);
  if (size > kMadeAtOnce)
    if (auto made = take_ahead(send)) return *std::move(made);
  Payload payload = take_room(size);
  payloads_.fill(payload_id(plan_, send, run_, iteration_), payload.bytes);
  return payload;
}

/// Also sees to it that the next ones of the lane are made.
std::optional<Payload> SyntheticDataPlane::take_ahead(OpId send) {
  const LaneId lane = plan_.op(send).lane;
  std::deque<Ahead>& ahead = ahead_[lane];
  std::optional<Payload> made;
  while (!ahead.empty() && ahead.front().send <= send) {
    ahead.front().made.wait();
    if (ahead.front().send == send) made = std::move(ahead.front().payload);
    ahead.pop_front();
  }
  const OpId last = ahead.empty() ? send : ahead.back().send;
  make_ahead(lane, static_cast<std::uint32_t>(index(last)) + 1);
  return made;
}

/// From op id `next` of the lane on. A relay's sends are not made here.
void SyntheticDataPlane::make_ahead(LaneId lane, std::uint32_t next) {
  const Lane& ops = plan_.lanes[index(lane)];
  std::deque<Ahead>& ahead = ahead_[lane];
  for (; next < index(ops.first) + ops.count && ahead.size() < kMadeAhead; ++next) {
    const OpId send{next};
    const std::size_t size = payloads_.bytes_for(plan_.op(send).size);
    if (size <= kMadeAtOnce || forwards_.recv_before(send) != kNone<OpId>) continue;
    Payload payload = take_room(size);
    const PayloadId id = payload_id(plan_, send, run_, iteration_);
    auto made = worker_.add([this, id, bytes = payload.bytes] { payloads_.fill(id, bytes); });
    ahead.push_back({send, std::move(payload), std::move(made)});
  }
}

Payload SyntheticDataPlane::room(OpId recv) {
  if (CollectiveDataPlane* const plane = plane_of(recv)) return plane->room(recv);
  const std::size_t size = payloads_.bytes_for(plan_.op(recv).size);
  Payload payload = take_room(size);
  if (size > kMadeAtOnce) received_[recv] = payload.owner;
  return payload;
}

Payloads::Verdict SyntheticDataPlane::check(OpId recv, std::span<const std::byte> payload,
                                            PayloadId& found) {
  const OpId send{plan_.op(recv).match};
  found = payload_id(plan_, send, run_, iteration_);
  if (CollectiveDataPlane* const plane = plane_of(recv)) return plane->check(recv, payload, found);
  const bool later =
      payload.size() > kMadeAtOnce && received_.contains(recv) && uncompared_ < kMostUncompared;
  const Payloads::Verdict verdict =
      payloads_.check(found, later ? payload.first(sizeof found) : payload);
  if (verdict == Payloads::Verdict::wrong_message)
    std::memcpy(&found, payload.data(), sizeof found);
  if (later && verdict == Payloads::Verdict::right) {
    compare(recv, found, payload);
  } else {
    received_.erase(recv);
  }
  return verdict;
}

void SyntheticDataPlane::compare(OpId recv, const PayloadId& expected,
                                 std::span<const std::byte> payload) {
  const auto room = received_.extract(recv);
  ++uncompared_;
  (void)worker_.add([this, recv, expected, payload, owner = room.mapped()] {
    const Payloads::Verdict verdict = payloads_.check(expected, payload);
    --uncompared_;
    if (verdict == Payloads::Verdict::right) return;
    const std::scoped_lock lock{late_mutex_};
    late_.push_back({recv, verdict, expected});
  });
}

void SyntheticDataPlane::corrupt(OpId send, FaultKind how, Payload& payload) {
  if (CollectiveDataPlane* const plane = plane_of(send)) return plane->corrupt(send, how, payload);
  worker_.finish();  // a relay's payload may be compared just now
  if (how == FaultKind::corrupt) payload.bytes.back() ^= std::byte{1};
  if (how != FaultKind::mislabel && how != FaultKind::swap) return;
  const OpId before{static_cast<std::uint32_t>(send) - 1};
  PayloadId other = payload_id(plan_, how == FaultKind::swap ? before : send, run_, iteration_);
  if (how == FaultKind::mislabel) ++other.microbatch;
  payloads_.fill(other, payload.bytes);
}

/// Element `at` of what `member` brings.
std::int64_t SyntheticDataPlane::contribution(OpId collective, Rank member, std::size_t at) const {
  const OpId first = plan_.collectives[plan_.op(collective).match].front();
  const std::uint64_t draw =
      derived_seed(seed_, index(first) << 20U | static_cast<std::uint64_t>(iteration_),
                   static_cast<std::uint64_t>(member) << 40U | at);
  return static_cast<std::int64_t>(draw >> 32U);  // sums of 2^31 of them fit
}

std::size_t SyntheticDataPlane::place_of(OpId collective) const {
  const std::vector<OpId>& members = plan_.collectives[plan_.op(collective).match];
  return to_size(std::ranges::find(members, collective) - members.begin());
}

comm::Exchange SyntheticDataPlane::exchange(OpId collective) {
  const Op& op = plan_.op(collective);
  const std::size_t n = plan_.collectives[op.match].size();
  const std::size_t share =
      std::max<std::size_t>(1, payloads_.bytes_for(op.size) / sizeof(std::int64_t) / n);
  const CollectiveFacts& facts = facts_of(op.collective);
  const std::size_t place = place_of(collective);
  Numbers& numbers = numbers_[collective];
  numbers.mine.resize(facts.brought(share * n, n, place));
  numbers.result.assign(facts.got(share * n, n, place), 0);
  for (std::size_t i = 0; i < numbers.mine.size(); ++i)
    numbers.mine[i] = contribution(collective, self_, i);
  return {NumberType::i64, std::as_bytes(std::span{numbers.mine}),
          std::as_writable_bytes(std::span{numbers.result})};
}

bool SyntheticDataPlane::exchanged(OpId collective) {
  const std::vector<std::int64_t>& result = numbers_[collective].result;
  switch (facts_of(plan_.op(collective).collective).merging) {
    case Merging::sum: return is_sum(collective, result);
    case Merging::side_by_side: return is_side_by_side(collective, result);
    case Merging::transposed: return is_transposed(collective, result);
  }
  return false;
}

bool SyntheticDataPlane::is_side_by_side(OpId collective,
                                         const std::vector<std::int64_t>& result) const {
  const Op& op = plan_.op(collective);
  const std::vector<OpId>& members = plan_.collectives[op.match];
  const CollectiveFacts& facts = facts_of(op.collective);
  if (result.empty()) return facts.got(members.size(), members.size(), place_of(collective)) == 0;
  if (facts.gets == Portion::share) {  // of what the first member brings
    const std::size_t offset = place_of(collective) * result.size();
    for (std::size_t i = 0; i < result.size(); ++i)
      if (result[i] != contribution(collective, plan_.rank_of(members.front()), offset + i))
        return false;
    return true;
  }
  std::size_t next = 0;
  for (std::size_t place = 0; place < members.size(); ++place) {
    const std::size_t brought = facts.brought(result.size(), members.size(), place);
    for (std::size_t i = 0; i < brought; ++i, ++next)
      if (result[next] != contribution(collective, plan_.rank_of(members[place]), i)) return false;
  }
  return next == result.size();
}

bool SyntheticDataPlane::is_transposed(OpId collective,
                                       const std::vector<std::int64_t>& result) const {
  const std::vector<OpId>& members = plan_.collectives[plan_.op(collective).match];
  const std::size_t part = result.size() / members.size();
  const std::size_t offset = place_of(collective) * part;
  for (std::size_t i = 0; i < result.size(); ++i)
    if (result[i] != contribution(collective, plan_.rank_of(members[i / part]), offset + i % part))
      return false;
  return true;
}

bool SyntheticDataPlane::is_sum(OpId collective, const std::vector<std::int64_t>& result) const {
  const Op& op = plan_.op(collective);
  const bool scatters = facts_of(op.collective).gets == Portion::share;
  const std::size_t offset = scatters ? place_of(collective) * result.size() : 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::int64_t expected = 0;
    for (const OpId member : plan_.collectives[op.match])
      expected += contribution(collective, plan_.rank_of(member), offset + i);
    if (result[i] != expected) return false;
  }
  return true;
}

}  // namespace longhaul::engine
