#include "training/operators/operator_data_plane.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace longhaul::training {

void OperatorDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  run_ = run;
  iteration_ = iteration;
}

engine::Payload OperatorDataPlane::make(OpId send) { return work_.make(send); }

engine::Payload OperatorDataPlane::room(OpId recv) {
  engine::Payload payload = work_.room(recv);
  room_bytes_[recv] = payload.bytes.size();
  return payload;
}

engine::Payloads::Verdict OperatorDataPlane::check(OpId recv, std::span<const std::byte> payload,
                                                   engine::PayloadId& found) {
  found = engine::payload_id(plan_, OpId{plan_.op(recv).match}, run_, iteration_);
  return payload.size() == room_bytes_.at(recv) ? engine::Payloads::Verdict::right
                                                : engine::Payloads::Verdict::corrupted;
}

void OperatorDataPlane::deliver(OpId recv, engine::Payload payload) {
  work_.deliver(recv, std::move(payload));
}

void OperatorDataPlane::corrupt(OpId /*send*/, engine::FaultKind how, engine::Payload& payload) {
  std::vector<float> numbers(payload.bytes.size() / sizeof(float));
  if (numbers.empty()) return;
  std::memcpy(numbers.data(), payload.bytes.data(), payload.bytes.size());
  if (how == engine::FaultKind::corrupt)
    numbers.back() += 1 + std::abs(numbers.back());
  else
    std::ranges::reverse(numbers);
  std::memcpy(payload.bytes.data(), numbers.data(), payload.bytes.size());
}

comm::Exchange OperatorDataPlane::exchange(OpId collective) {
  LONGHAUL_ASSERT(false, "op {} is one call, not messages", index(collective));
}

bool OperatorDataPlane::exchanged(OpId collective) {
  LONGHAUL_ASSERT(false, "op {} is one call, not messages", index(collective));
}

}  // namespace longhaul::training
