#include "engine/payloads/synthetic_data_plane.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"

namespace longhaul {

SyntheticDataPlane::SyntheticDataPlane(const Plan& plan, Rank self, std::uint64_t seed,
                                       Bytes largest)
    : plan_{plan},
      self_{self},
      seed_{seed},
      payloads_{seed, largest},
      free_{std::make_shared<std::vector<std::unique_ptr<Room>>>()} {}

void SyntheticDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  run_ = run;
  iteration_ = iteration;
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
  Payload payload = take_room(payloads_.bytes_for(plan_.op(send).size));
  payloads_.fill(payload_id(plan_, send, run_, iteration_), payload.bytes);
  return payload;
}

Payload SyntheticDataPlane::room(OpId recv) {
  return take_room(payloads_.bytes_for(plan_.op(recv).size));
}

Payloads::Verdict SyntheticDataPlane::check(OpId recv, std::span<const std::byte> payload,
                                            PayloadId& found) {
  const OpId send{plan_.op(recv).match};
  found = payload_id(plan_, send, run_, iteration_);
  const Payloads::Verdict verdict = payloads_.check(found, payload);
  if (verdict == Payloads::Verdict::wrong_message)
    std::memcpy(&found, payload.data(), sizeof found);
  return verdict;
}

void SyntheticDataPlane::corrupt(OpId send, FaultKind how, Payload& payload) {
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

Exchange SyntheticDataPlane::exchange(OpId collective) {
  const Op& op = plan_.op(collective);
  const std::size_t n = plan_.collectives[op.match].size();
  const std::size_t share =
      std::max<std::size_t>(1, payloads_.bytes_for(op.size) / sizeof(std::int64_t) / n);
  Numbers& numbers = numbers_[collective];
  numbers.mine.resize(op.collective == CollectiveKind::all_gather ? share : share * n);
  numbers.result.assign(op.collective == CollectiveKind::reduce_scatter ? share : share * n, 0);
  for (std::size_t i = 0; i < numbers.mine.size(); ++i)
    numbers.mine[i] = contribution(collective, self_, i);
  return {ExchangeType::i64, std::as_bytes(std::span{numbers.mine}),
          std::as_writable_bytes(std::span{numbers.result})};
}

bool SyntheticDataPlane::exchanged(OpId collective) {
  const Op& op = plan_.op(collective);
  const std::vector<OpId>& members = plan_.collectives[op.match];
  const std::vector<std::int64_t>& result = numbers_[collective].result;
  const std::size_t share = result.size() / members.size();
  std::size_t offset = 0;
  if (op.collective == CollectiveKind::reduce_scatter) {
    const auto self = std::ranges::find(members, collective);
    offset = static_cast<std::size_t>(self - members.begin()) * result.size();
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::int64_t expected = 0;
    if (op.collective == CollectiveKind::all_gather) {
      expected = contribution(collective, plan_.rank_of(members[i / share]), i % share);
    } else {
      for (const OpId member : members)
        expected += contribution(collective, plan_.rank_of(member), offset + i);
    }
    if (result[i] != expected) return false;
  }
  return true;
}

}  // namespace longhaul
