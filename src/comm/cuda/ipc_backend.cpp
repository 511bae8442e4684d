#include "comm/cuda/ipc_backend.hpp"

#include <cstring>

namespace longhaul::comm {

CudaIpcBackend::CudaIpcBackend(Transport& host, const HostRanks& host_ranks, int index)
    : host_{host},
      host_ranks_{host_ranks},
      flags_{host_ranks},
      lanes_{index},
      collectives_{host, lanes_} {}

/// Memory that another process has open must not be freed.
CudaIpcBackend::~CudaIpcBackend() {
  lanes_.wait();
  opened_.close();
  flags_.leave();
}

bool CudaIpcBackend::send(const PayloadSend& payload, PayloadDetails& details) {
  auto found = slots_.find(payload.to);
  if (found == slots_.end())
    found = slots_.emplace(payload.to, SlotsToPeer{flags_, host_ranks_.self(), payload.to}).first;
  const std::size_t size = payload.data.size();
  const SlotsToPeer::Slot* const slot = found->second.take(size);
  if (slot == nullptr) return false;

  const cudaStream_t stream = lanes_.stream(Side::send, payload.pace.lane, payload.to);
  Lanes::MarkHandle mark = lanes_.begin(stream);
  std::shared_ptr<std::byte> pinned;
  if (size > 0) {
    const std::byte* from = payload.data.data();
    if (!is_on_device(from)) {  // copies of pageable memory would wait for the stream
      pinned = pinned_.take(size);
      std::memcpy(pinned.get(), from, size);
      from = pinned.get();
    }
    cuda::check(cudaMemcpyAsync(slot->memory.data(), from, size, cudaMemcpyDefault, stream));
  }
  slot->written.record(stream);
  lanes_.end({payload.request, size, payload.pace, std::move(mark), [pinned] {}}, stream);
  std::memcpy(details.data(), &slot->address, sizeof slot->address);
  return true;
}

void CudaIpcBackend::receive(const PayloadReceive& payload, std::size_t announced,
                             const PayloadDetails& details) {
  IpcAddress address;
  std::memcpy(&address, details.data(), sizeof address);
  const OpenedSlots::Opened slot = opened_.open(address);
  const cudaStream_t stream = lanes_.stream(Side::receive, payload.pace.lane, payload.from);
  Lanes::MarkHandle mark = lanes_.begin(stream);
  cuda::check(cudaStreamWaitEvent(stream, slot.written, 0));
  std::function<void()> then;
  if (announced > 0) {
    std::byte* to = payload.buffer.data();
    if (!is_on_device(to)) {
      const std::shared_ptr<std::byte> pinned = pinned_.take(announced);
      then = [pinned, to, announced] { std::memcpy(to, pinned.get(), announced); };
      to = pinned.get();
    }
    cuda::check(cudaMemcpyAsync(to, slot.data, announced, cudaMemcpyDefault, stream));
  }
  lanes_.after(stream, [this, from = payload.from, at = address.slot] { give_back(from, at); });
  lanes_.end({payload.request, announced, payload.pace, std::move(mark), std::move(then)}, stream);
}

void CudaIpcBackend::give_back(Rank from, std::uint32_t slot) {
  flags_.flag(from, host_ranks_.self(), slot).store(0);
  host_ranks_.ring_doorbell_if_sending(from);
}

void CudaIpcBackend::collective(RequestId request, CollectiveKind kind,
                                std::span<const Rank> members, const Exchange& exchange) {
  collectives_.begin(request, kind, members, exchange);
}

}  // namespace longhaul::comm
