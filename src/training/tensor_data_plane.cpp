#include "training/tensor_data_plane.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace longhaul::training {

TensorDataPlane::TensorDataPlane(const Plan& plan, Rank self, LayerWork& work,
                                 nn::TensorOps& step_math, nn::DeviceMemory& memory,
                                 std::optional<engine::Fault> fault)
    : plan_{plan},
      work_{work},
      forwards_{plan, self},
      steps_{plan, self, step_math, memory},
      swaps_{fault && fault->kind == engine::FaultKind::swap && fault->rank == self} {
  for (std::size_t c = 0; c < plan.stepped.size(); ++c) {
    const SteppedCollective& stepped = plan.stepped[c];
    if (!std::ranges::binary_search(stepped.collective.members, self)) continue;
    const StageShard& stage = work.stage_of(stepped.chunk);
    steps_.set_numbers(c, is_before_forward(stepped.collective.kind) ? stage.weights_in_steps()
                                                                     : stage.gradients_in_steps());
  }
}

void TensorDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  run_ = run;
  iteration_ = iteration;
  sent_.clear();
  steps_.begin_iteration();
}

std::vector<engine::LateVerdict> TensorDataPlane::end_iteration() {
  steps_.finish();
  return {};
}

nn::ArrayView TensorDataPlane::view_of(const engine::Payload& payload) const {
  const NumberType type = work_.tensors().type();
  return {payload.bytes.data(), payload.bytes.size() / bytes_of(type), type};
}

std::vector<float> TensorDataPlane::numbers_of(const engine::Payload& payload) {
  const nn::ArrayView view = view_of(payload);
  std::vector<float> numbers(view.count);
  work_.math().copy_out(view, numbers);
  return numbers;
}

engine::Payload TensorDataPlane::make(OpId send) {
  const Op& op = plan_.op(send);
  if (is_step(op)) return steps_.make(send);
  engine::Payload payload = work_.tensors().piece_of(tensor_key(op), op.piece, op.pieces);
  if (swaps_) {
    Sent& sent = sent_[op.lane];
    sent.before = std::exchange(sent.last, numbers_of(payload));
  }
  return payload;
}

engine::Payload TensorDataPlane::room(OpId recv) {
  const Op& op = plan_.op(recv);
  if (is_step(op)) {
    engine::Payload payload = steps_.room(recv);
    room_bytes_[recv] = payload.bytes.size();
    return payload;
  }
  const bool stays = forwards_.send_after(recv) == kNone<OpId>;
  const std::string what = "room for the message of " + to_text(op.block());
  Tensors& tensors = work_.tensors();
  engine::Payload payload = stays ? tensors.room_in(tensor_key(op), op.piece, op.pieces, what)
                                  : tensors.room_apart(op.piece, op.pieces, what);
  room_bytes_[recv] = payload.bytes.size();
  return payload;
}

engine::Payloads::Verdict TensorDataPlane::check(OpId recv, std::span<const std::byte> payload,
                                                 engine::PayloadId& found) {
  found = engine::payload_id(plan_, OpId{plan_.op(recv).match}, run_, iteration_);
  return payload.size() == room_bytes_.at(recv) ? engine::Payloads::Verdict::right
                                                : engine::Payloads::Verdict::corrupted;
}

void TensorDataPlane::deliver(OpId recv, engine::Payload payload) {
  const Op& op = plan_.op(recv);
  if (is_step(op)) {
    steps_.deliver(recv, std::move(payload));
    if (is_before_forward(op.collective))
      work_.stage_of(plan_.stepped[stepped_of(op)].chunk).weights_came();
    return;
  }
  work_.tensors().arrived(tensor_key(plan_.op(recv)));
}

/// Headers stay right, or say that they are not: what is wrong here must show in the gradients.
void TensorDataPlane::corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) {
  if (is_step(plan_.op(send))) return steps_.corrupt(send, payload);
  const nn::ArrayView view = view_of(payload);
  std::vector<float> numbers = numbers_of(payload);
  if (how == engine::FaultKind::corrupt) numbers.back() += 1 + std::abs(numbers.back());
  if (how == engine::FaultKind::mislabel) std::ranges::reverse(numbers);
  if (how == engine::FaultKind::swap)
    std::ranges::copy(std::span{sent_[plan_.op(send).lane].before}.first(numbers.size()),
                      numbers.begin());
  work_.math().copy_in(numbers, view);
  work_.math().finish();
}

comm::Exchange TensorDataPlane::exchange(OpId collective) {
  StageShard& stage = work_.stage_of(collective);
  return is_before_forward(plan_.op(collective).collective) ? stage.weights_exchange()
                                                            : stage.gradients_exchange();
}

/// A wrong sum shows in the gradients.
bool TensorDataPlane::exchanged(OpId collective) {
  if (is_before_forward(plan_.op(collective).collective)) work_.stage_of(collective).weights_came();
  return true;
}

}  // namespace longhaul::training
