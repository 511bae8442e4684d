#include "engine/payloads/synthetic_data_plane.hpp"

#include <algorithm>
#include <cstring>

#include "base/index.hpp"
#include "base/random.hpp"

namespace longhaul::engine {
namespace {

/// Of the vector of a collective, so that none of its messages exceeds `largest`.
Bytes capped_size(const SteppedCollective& stepped, Bytes largest) {
  Bytes longest;
  for (const plan::StepMessage& message : stepped.steps->messages)
    longest = std::max(longest, message.size);
  const Bytes size = stepped.collective.size;
  if (longest <= largest) return size;
  const double part = static_cast<double>(largest.count()) / static_cast<double>(longest.count());
  const auto capped = static_cast<std::int64_t>(part * static_cast<double>(size.count()));
  return Bytes{std::max<std::int64_t>(capped, stepped.collective.pieces)};
}

}  // namespace

SyntheticDataPlane::SyntheticDataPlane(const Plan& plan, Rank self, std::uint64_t seed,
                                       Bytes largest)
    : plan_{plan},
      self_{self},
      seed_{seed},
      payloads_{seed, largest},
      free_{std::make_shared<std::vector<std::unique_ptr<Room>>>()} {
  for (const SteppedCollective& each : plan.stepped) {
    const bool member = std::ranges::binary_search(each.collective.members, self);
    in_steps_.push_back(
        member ? std::make_unique<CollectiveDataPlane>(each, capped_size(each, largest), self)
               : nullptr);
  }
}

CollectiveDataPlane* SyntheticDataPlane::plane_of(OpId message) const {
  const Op& op = plan_.op(message);
  return is_step(op) ? in_steps_[stepped_of(op)].get() : nullptr;
}

void SyntheticDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  run_ = run;
  iteration_ = iteration;
  for (const auto& plane : in_steps_)
    if (plane) plane->begin_iteration(run, iteration);
}

std::vector<LateVerdict> SyntheticDataPlane::end_iteration() {
  std::vector<LateVerdict> wrong;
  for (std::size_t c = 0; c < in_steps_.size(); ++c) {
    CollectiveDataPlane* const plane = in_steps_[c].get();
    if (plane == nullptr) continue;
    (void)plane->end_iteration();
    if (plane->wrong_items() == 0) continue;
    // Which message brought it is not known: the last that came.
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
  return wrong;
}

void SyntheticDataPlane::deliver(OpId recv, Payload payload) {
  if (CollectiveDataPlane* const plane = plane_of(recv)) plane->deliver(recv, std::move(payload));
}

Payload SyntheticDataPlane::take_room(std::size_t size) {
  std::unique_ptr<Room> room;
  if (free_->empty()) {
    room = std::make_unique<Room>();
  } else {
    room = std::move(free_->back());
    free_->pop_back();
  }
  room->resize(size);
  const std::span<std::byte> bytes{*room};
  const auto give_back = [free = free_](Room* used) {
    free->push_back(std::unique_ptr<Room>{used});
  };
  return {bytes, std::shared_ptr<Room>{room.release(), give_back}};
}

Payload SyntheticDataPlane::make(OpId send) {
  if (CollectiveDataPlane* const plane = plane_of(send)) return plane->make(send);
  Payload payload = take_room(payloads_.bytes_for(plan_.op(send).size));
  payloads_.fill(payload_id(plan_, send, run_, iteration_), payload.bytes);
  return payload;
}

Payload SyntheticDataPlane::room(OpId recv) {
  if (CollectiveDataPlane* const plane = plane_of(recv)) return plane->room(recv);
  return take_room(payloads_.bytes_for(plan_.op(recv).size));
}

Payloads::Verdict SyntheticDataPlane::check(OpId recv, std::span<const std::byte> payload,
                                            PayloadId& found) {
  if (CollectiveDataPlane* const plane = plane_of(recv)) return plane->check(recv, payload, found);
  const OpId send{plan_.op(recv).match};
  found = payload_id(plan_, send, run_, iteration_);
  const Payloads::Verdict verdict = payloads_.check(found, payload);
  if (verdict == Payloads::Verdict::wrong_message)
    std::memcpy(&found, payload.data(), sizeof found);
  return verdict;
}

void SyntheticDataPlane::corrupt(OpId send, FaultKind how, Payload& payload) {
  if (CollectiveDataPlane* const plane = plane_of(send)) return plane->corrupt(send, how, payload);
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
