#include "comm/cuda/staged_backend.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "cuda/check.hpp"

namespace longhaul::comm {
namespace {

/// Large enough for the network's full rate, small enough that the first is soon on its way.
constexpr std::size_t kPiece = std::size_t{4} << 20U;

}  // namespace

/// One payload on one side.
struct StagedBackend::Moving {
  RequestId request{};
  Rank peer{};
  cuda::LanePace pace;
  int tag = 0;
  std::byte* data = nullptr;  ///< only read from where it leaves
  std::size_t size = 0;
  bool staged = false;
  cudaStream_t stream = nullptr;
  Lanes::MarkHandle mark{};
  std::size_t open = 0;  ///< pieces without which the lane cannot end
  std::vector<std::shared_ptr<std::byte>> pinned{};
  std::optional<Completion> held_back{};  ///< of one that leaves, until all pieces have

  [[nodiscard]] std::size_t pieces() const { return (size + kPiece - 1) / kPiece; }
  [[nodiscard]] std::span<std::byte> piece(std::size_t at) const {
    return {data + at * kPiece, std::min(kPiece, size - at * kPiece)};
  }
  /// Memory that the host's transport sends or fills.
  [[nodiscard]] std::span<std::byte> on_host(std::size_t at) const {
    return staged ? std::span{pinned[at].get(), piece(at).size()} : piece(at);
  }
};

StagedBackend::StagedBackend(Transport& host, int index, DeviceMemory how)
    : host_{host}, how_{how}, lanes_{index}, collectives_{host, lanes_} {}

bool StagedBackend::is_staged(const void* data) const {
  return how_ == DeviceMemory::through_pinned && is_on_device(data);
}

bool StagedBackend::send(const PayloadSend& payload, PayloadDetails& details) {
  const cudaStream_t stream = lanes_.stream(Side::send, payload.pace.lane, payload.to);
  const auto moving = std::make_shared<Moving>(
      Moving{payload.request, payload.to, payload.pace, first_tag_ + next_tag_++ % kTags,
             const_cast<std::byte*>(payload.data.data()), payload.data.size(),
             payload.data.empty() || is_staged(payload.data.data()), stream});
  std::memcpy(details.data(), &moving->tag, sizeof moving->tag);
  moving->mark = lanes_.begin(stream);
  moving->open = moving->pieces();
  if (moving->staged && moving->open > 0) leaving_.emplace(moving->request, moving);
  for (std::size_t at = 0; at < moving->pieces(); ++at) {
    if (!moving->staged) {
      send_piece(moving, at);
      continue;
    }
    const std::span<std::byte> piece = moving->piece(at);
    moving->pinned.push_back(pinned_.take(piece.size()));
    cuda::check(cudaMemcpyAsync(moving->pinned[at].get(), piece.data(), piece.size(),
                                cudaMemcpyDeviceToHost, stream));
    lanes_.after(stream, [this, moving, at] { send_piece(moving, at); });
  }
  // The lane is free again when the bytes have been copied and the hold is over.
  if (moving->staged)
    lanes_.end({moving->request, moving->size, moving->pace, std::move(moving->mark)}, stream);
  return true;
}

void StagedBackend::send_piece(const MovingHandle& moving, std::size_t at) {
  const RequestId sent = host_.send(moving->peer, moving->tag, moving->on_host(at));
  host_.ring_doorbell(moving->peer);
  at_host_.emplace(sent, [this, moving] {
    if (!moving->staged) return finish_one(moving);
    --moving->open;
  });
}

void StagedBackend::receive(const PayloadReceive& payload, std::size_t announced,
                            const PayloadDetails& details) {
  const cudaStream_t stream = lanes_.stream(Side::receive, payload.pace.lane, payload.from);
  const auto moving = std::make_shared<Moving>(
      Moving{payload.request, payload.from, payload.pace, 0, payload.buffer.data(), announced,
             announced == 0 || is_staged(payload.buffer.data()), stream});
  std::memcpy(&moving->tag, details.data(), sizeof moving->tag);
  moving->mark = lanes_.begin(stream);
  moving->open = moving->pieces() + 1;
  for (std::size_t at = 0; at < moving->pieces(); ++at) receive_piece(moving, at);
  finish_one(moving);
}

void StagedBackend::receive_piece(const MovingHandle& moving, std::size_t at) {
  if (moving->staged) moving->pinned.push_back(pinned_.take(moving->piece(at).size()));
  const RequestId received = host_.receive(moving->peer, moving->tag, moving->on_host(at));
  at_host_.emplace(received, [this, moving, at] { take_piece(moving, at); });
}

void StagedBackend::take_piece(const MovingHandle& moving, std::size_t at) {
  const std::span<std::byte> piece = moving->piece(at);
  if (moving->staged)
    cuda::check(cudaMemcpyAsync(piece.data(), moving->pinned[at].get(), piece.size(),
                                cudaMemcpyHostToDevice, moving->stream));
  finish_one(moving);
}

void StagedBackend::finish_one(const MovingHandle& moving) {
  if (--moving->open > 0) return;
  lanes_.end({moving->request, moving->size, moving->pace, std::move(moving->mark),
              [moving] { moving->pinned.clear(); }},
             moving->stream);
}

void StagedBackend::collective(RequestId request, CollectiveKind kind,
                               std::span<const Rank> members, const Exchange& exchange) {
  collectives_.begin(request, kind, members, exchange);
}

bool StagedBackend::host_done(const Completion& completion, std::vector<Completion>& done) {
  const auto found = at_host_.find(completion.request);
  if (found == at_host_.end()) return collectives_.host_done(completion, done);
  const std::function<void()> what = std::move(found->second);
  at_host_.erase(found);
  what();
  return true;
}

void StagedBackend::advance(std::vector<Completion>& done) {
  std::vector<Completion> over;
  lanes_.advance(over);
  for (const Completion& completion : over) {
    const auto found = leaving_.find(completion.request);
    if (found == leaving_.end()) {
      done.push_back(completion);
    } else {
      found->second->held_back = completion;
    }
  }
  std::erase_if(leaving_, [&](const auto& entry) {
    const bool left = entry.second->open == 0 && entry.second->held_back;
    if (left) done.push_back(*entry.second->held_back);
    return left;
  });
}

bool StagedBackend::busy() const {
  return lanes_.busy() || !at_host_.empty() || !leaving_.empty() || collectives_.busy();
}

}  // namespace longhaul::comm
