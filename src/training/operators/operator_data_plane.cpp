#include "training/operators/operator_data_plane.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace longhaul::training {

OperatorDataPlane::OperatorDataPlane(const Plan& plan, OperatorWork& work,
                                     const std::optional<engine::Fault>& fault)
    : plan_{plan},
      work_{work},
      keeps_by_lane_{fault && fault->kind == engine::FaultKind::swap},
      keeps_by_send_{fault && fault->kind == engine::FaultKind::stale} {}

void OperatorDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  run_ = run;
  iteration_ = iteration;
}

engine::Payload OperatorDataPlane::make(OpId send) {
  engine::Payload payload = work_.make(send);
  if (keeps_by_lane_ || keeps_by_send_) keep(send, payload);
  return payload;
}

void OperatorDataPlane::keep(OpId send, const engine::Payload& payload) {
  Sent& sent = keeps_by_lane_ ? sent_on_[plan_.op(send).lane] : sent_by_[send];
  sent.before = std::exchange(sent.last, numbers_in(send, payload));
}

OperatorDataPlane::Numbers OperatorDataPlane::numbers_in(OpId message,
                                                         const engine::Payload& payload) const {
  const nn::ArrayView view = work_.view_of(message, payload);
  Numbers numbers(view.count);
  if (view.count > 0) work_.step_math().copy_out(view, numbers);
  return numbers;
}

/// Of the message before it on its lane, or of itself in the iteration before.
const std::vector<float>& OperatorDataPlane::kept(OpId send, engine::FaultKind how) {
  return how == engine::FaultKind::swap ? sent_on_[plan_.op(send).lane].before
                                        : sent_by_[send].before;
}

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

void OperatorDataPlane::corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) {
  using engine::FaultKind;
  Numbers numbers = numbers_in(send, payload);
  if (numbers.empty()) return;
  if (how == FaultKind::corrupt) numbers.back() += 1 + std::abs(numbers.back());
  if (how == FaultKind::mislabel) std::ranges::reverse(numbers);
  if (how == FaultKind::omit) std::ranges::fill(numbers, 0.0F);
  if (how == FaultKind::repeat)
    for (float& each : numbers) each *= 2;
  if (how == FaultKind::swap || how == FaultKind::stale) {
    const Numbers& other = kept(send, how);
    std::copy_n(other.begin(), std::min(other.size(), numbers.size()), numbers.begin());
  }
  work_.step_math().copy_in(numbers, work_.view_of(send, payload));
  work_.step_math().finish();
}

comm::Exchange OperatorDataPlane::exchange(OpId collective) {
  LONGHAUL_ASSERT(false, "op {} is one call, not messages", index(collective));
}

bool OperatorDataPlane::exchanged(OpId collective) {
  LONGHAUL_ASSERT(false, "op {} is one call, not messages", index(collective));
}

}  // namespace longhaul::training
