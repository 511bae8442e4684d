#include "training/parts/set_data_plane.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "compress/sparse_set.hpp"
#include "compress/wire/dense.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::training {
namespace {

/// A payload like it that says less.
std::vector<std::byte> without_last(std::span<const std::byte> payload) {
  constexpr const char* kOwn = "a set of this rank";
  if (payload[1] == std::byte{'B'} || payload[1] == std::byte{'Q'}) {
    std::vector<std::byte> other(payload.begin(), payload.end());
    other.back() ^= std::byte{1};  // the sign of one of the last numbers
    return other;
  }
  if (payload[1] == std::byte{'F'}) {
    std::vector<std::byte> other(payload.begin(), payload.end());
    const std::byte code = other.back() & std::byte{15};  // 0 means nothing
    other.back() ^= code == std::byte{1} ? std::byte{2} : std::byte{1};
    return other;
  }
  if (payload.size() > 1 && payload[1] == std::byte{'D'}) {
    std::vector<float> numbers = compress::decode_dense(payload, {.source = kOwn});
    if (!numbers.empty()) numbers.back() += 1;
    return compress::encode_dense(numbers, static_cast<compress::DenseFormat>(payload[2]));
  }
  compress::SparseSet set = compress::decode(payload, {.source = kOwn});
  if (!set.blocks.empty()) {
    set.values.resize(set.values.size() - set.size_of(set.blocks.back()));
    set.blocks.pop_back();
  }
  const auto formats = std::to_integer<unsigned>(payload[2]);
  return compress::encode(set, static_cast<compress::IndexFormat>(formats & 15U),
                          static_cast<compress::ValueFormat>(formats >> 4U));
}

}  // namespace

void SetDataPlane::begin_iteration(std::uint32_t run, int /*iteration*/) {
  run_ = run;
  for (auto& [op, next] : iterations_) next = first_;
  awaited_.clear();
}

int SetDataPlane::next_iteration(OpId op) {
  return iterations_.try_emplace(op, first_).first->second++;
}

engine::Payload SetDataPlane::tensor_to_send(OpId send) {
  const Op& op = plan_.op(send);
  engine::Payload tensor = work_.blocks().tensors().piece_of(tensor_key(op), op.piece, op.pieces);
  if (activations_) {
    std::vector<float> numbers(tensor.bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
    auto coded =
        std::make_shared<std::vector<std::byte>>(activations_->sent(send, std::move(numbers)));
    tensor = {*coded, coded};
  }
  const auto size = static_cast<std::int64_t>(tensor.bytes.size());
  count_tensor(send, next_iteration(send), size);
  if (plan_.crosses_datacenters(send)) sent_.wan_encoded_bytes += size;  // it has no envelope
  return tensor;
}

void SetDataPlane::count_tensor(OpId send, int iteration, std::int64_t carried) {
  sent_.between_stages += carried;
  if (!plan_.crosses_datacenters(send)) return;
  sent_.wan_between_stages += carried;
  sent_.wan_payload_bytes += carried;
  sent_.wan_nominal_bytes += sizes_.size(send, iteration).count();
}

engine::Payload SetDataPlane::room_for_tensor(OpId recv) {
  const Op& op = plan_.op(recv);
  engine::Payload tensor = work_.blocks().tensors().room_in(
      tensor_key(op), op.piece, op.pieces, "room for the message of " + to_text(op.block()));
  if (!activations_) return tensor;
  auto room = std::make_shared<CodedRoom>();
  const std::size_t count = tensor.bytes.size() / sizeof(float);
  room->bytes.resize(activations_->most_bytes(count));
  coming_[recv] = count;
  room->tensor = std::move(tensor);
  return {room->bytes, room};
}

engine::Payload SetDataPlane::make(OpId send) {
  const PartOps::MessageOf* const set = work_.part_ops().message_of(send);
  if (set == nullptr) return tensor_to_send(send);
  const int iteration = next_iteration(send);
  ReplicaWork::Bytes bytes = work_.sent_set(set->part, set->message, iteration);
  const auto size = static_cast<std::int64_t>(bytes->size());
  ++sent_.messages;
  sent_.payload_bytes += size;
  const std::int64_t encoded = size - static_cast<std::int64_t>(sizeof(SetEnvelope));
  sent_.encoded_bytes += encoded;
  if (plan_.crosses_datacenters(send)) {
    sent_.wan_payload_bytes += size;
    sent_.wan_encoded_bytes += encoded;
    sent_.wan_nominal_bytes += sizes_.size(send, iteration).count();
  }
  return {*bytes, bytes};
}

void SetDataPlane::count_planned(Rank self, int first, int past, Bytes most) {
  const OpRange ops = ops_of_rank(plan_, self);
  for (std::uint32_t i = 0; i < ops.count; ++i) {
    const OpId send{ops.first + i};
    if (plan_.op(send).kind != OpKind::send) continue;
    const bool is_set = work_.part_ops().message_of(send) != nullptr;
    for (int iteration = first; iteration < past; ++iteration) {
      const Bytes nominal = sizes_.size(send, iteration);
      const std::int64_t carried = std::min(nominal, most).count();
      if (!is_set) {
        count_tensor(send, iteration, carried);
        continue;
      }
      ++sent_.messages;
      sent_.payload_bytes += carried;
      if (!plan_.crosses_datacenters(send)) continue;
      sent_.wan_payload_bytes += carried;
      sent_.wan_nominal_bytes += nominal.count();
    }
  }
}

engine::Payload SetDataPlane::room(OpId recv) {
  const PartOps::MessageOf* const set = work_.part_ops().message_of(recv);
  if (set == nullptr) return room_for_tensor(recv);
  auto room = std::make_shared<Room>();
  room->bytes.resize(work_.largest_set(set->part));
  room->iteration = next_iteration(recv);
  awaited_[recv].push_back(room->iteration);
  return {room->bytes, room};
}

engine::Payloads::Verdict SetDataPlane::check(OpId recv, std::span<const std::byte> payload,
                                              engine::PayloadId& found) {
  using Verdict = engine::Payloads::Verdict;
  found = engine::payload_id(plan_, OpId{plan_.op(recv).match}, run_, 0);
  const PartOps::MessageOf* const set = work_.part_ops().message_of(recv);
  if (set == nullptr) {
    const bool fits =
        activations_ ? activations_->fits(payload.size(), coming_.at(recv)) : !payload.empty();
    return fits ? Verdict::right : Verdict::corrupted;
  }
  const std::optional<SetEnvelope> envelope = envelope_of(payload);
  if (!envelope) return Verdict::corrupted;
  std::vector<int>& awaited = awaited_[recv];
  const auto iteration = std::ranges::find(awaited, envelope->iteration);
  if (envelope->part != work_.part_ops().parts()[set->part].trained.number ||
      iteration == awaited.end())
    return Verdict::wrong_message;
  awaited.erase(iteration);
  return envelope->sum == sum_of_bytes(opened(payload)) ? Verdict::right : Verdict::corrupted;
}

void SetDataPlane::deliver(OpId recv, engine::Payload payload) {
  const PartOps::MessageOf* const set = work_.part_ops().message_of(recv);
  if (set == nullptr) {
    if (activations_) {
      const engine::Payload& tensor = static_cast<CodedRoom*>(payload.owner.get())->tensor;
      const std::vector<float> numbers = activations_->received(
          recv, payload.bytes, coming_.at(recv),
          fmt::format("rank {}, message of {}", index(plan_.rank_of(OpId{plan_.op(recv).match})),
                      to_text(plan_.op(recv).block())));
      std::memcpy(tensor.bytes.data(), numbers.data(), tensor.bytes.size());
    }
    return work_.blocks().tensors().arrived(tensor_key(plan_.op(recv)));
  }
  Room& room = *static_cast<Room*>(payload.owner.get());
  room.bytes.resize(payload.bytes.size());
  work_.received_set(set->part, set->message, room.iteration,
                     std::make_shared<std::vector<std::byte>>(std::move(room.bytes)));
}

void SetDataPlane::corrupt(OpId send, engine::FaultKind /*how*/, engine::Payload& payload) {
  if (work_.part_ops().message_of(send) == nullptr) return;
  const SetEnvelope envelope = *envelope_of(payload.bytes);
  auto changed = std::make_shared<std::vector<std::byte>>(
      sealed(envelope, without_last(opened(payload.bytes))));
  payload = {*changed, changed};
}

comm::Exchange SetDataPlane::exchange(OpId collective) {
  fail("op {} is a collective (parts are exchanged by messages).", index(collective));
}

bool SetDataPlane::exchanged(OpId /*collective*/) { return false; }

}  // namespace longhaul::training
