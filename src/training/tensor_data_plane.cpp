#include "training/tensor_data_plane.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace longhaul::training {

TensorDataPlane::TensorDataPlane(const Plan& plan, Rank self, LayerWork& work,
                                 std::optional<engine::Fault> fault)
    : plan_{plan},
      work_{work},
      forwards_{plan, self},
      swaps_{fault && fault->kind == engine::FaultKind::swap && fault->rank == self} {}

void TensorDataPlane::begin_iteration(std::uint32_t run, int iteration) {
  run_ = run;
  iteration_ = iteration;
  sent_.clear();
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
  engine::Payload payload = work_.tensors().piece_of(tensor_key(op), op.piece, op.pieces);
  if (swaps_) {
    Sent& sent = sent_[op.lane];
    sent.before = std::exchange(sent.last, numbers_of(payload));
  }
  return payload;
}

engine::Payload TensorDataPlane::room(OpId recv) {
  const Op& op = plan_.op(recv);
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

void TensorDataPlane::deliver(OpId recv, engine::Payload /*payload*/) {
  work_.tensors().arrived(tensor_key(plan_.op(recv)));
}

/// Headers stay right, or say that they are not: what is wrong here must show in the gradients.
void TensorDataPlane::corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) {
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
