#include "comm/cuda/ipc_slots.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <thread>

#include "base/index.hpp"

namespace longhaul::comm {
namespace {

/// cudaMalloc puts small allocations side by side into one block, which a process can open only
/// once: blocks of our own have this size or a multiple of it.
constexpr std::size_t kBlock = std::size_t{2} << 20U;

std::uint64_t this_process() {
  static const std::uint64_t number = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32U | random();
  }();
  return number;
}

std::size_t place_of(const HostRanks& host_ranks, Rank rank) {
  const std::vector<Rank>& local = host_ranks.local();
  return at(std::ranges::find(local, rank) - local.begin());
}

/// Flags of all pairs, and after them how many ranks have left.
std::size_t count_words(const HostRanks& host_ranks) {
  const auto ranks = to_size(host_ranks.local_ranks());
  return ranks * ranks * SlotFlags::kSlots + 1;
}

}  // namespace

SlotFlags::SlotFlags(const HostRanks& host_ranks)
    : host_ranks_{host_ranks},
      memory_{host_ranks.host(), count_words(host_ranks) * sizeof(std::uint32_t)} {}

/// Zeroed memory is every atomic's initial value here.
std::atomic<std::uint32_t>* SlotFlags::words() const {
  return reinterpret_cast<std::atomic<std::uint32_t>*>(memory_.data());
}

std::atomic<std::uint32_t>& SlotFlags::flag(Rank from, Rank to, std::uint32_t slot) const {
  const std::size_t pair =
      place_of(host_ranks_, from) * to_size(host_ranks_.local_ranks()) + place_of(host_ranks_, to);
  return words()[pair * kSlots + slot];
}

void SlotFlags::leave() const {
  using namespace std::chrono_literals;
  std::atomic<std::uint32_t>& left = words()[count_words(host_ranks_) - 1];
  left.fetch_add(1);
  const TimePoint give_up = now() + 2s;
  while (left.load() < static_cast<std::uint32_t>(host_ranks_.local_ranks()) && now() < give_up)
    std::this_thread::sleep_for(1ms);
}

SlotsToPeer::Slot* SlotsToPeer::take(std::size_t bytes) {
  std::uint32_t best = SlotFlags::kSlots;
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (flags_.flag(self_, peer_, i).load() != 0) continue;
    best = i;
    if (slots_[i]->memory.bytes() >= bytes) break;
  }
  const bool fits = best < slots_.size() && slots_[best]->memory.bytes() >= bytes;
  if (!fits && slots_.size() < SlotFlags::kSlots) best = static_cast<std::uint32_t>(slots_.size());
  if (best == SlotFlags::kSlots) return nullptr;
  Slot& slot = fits ? *slots_[best] : make(best, bytes);
  flags_.flag(self_, peer_, best).store(1);
  return &slot;
}

SlotsToPeer::Slot& SlotsToPeer::make(std::uint32_t number, std::size_t bytes) {
  const std::size_t size = std::max(kBlock, std::bit_ceil(bytes));
  auto slot = std::make_unique<Slot>(size);
  IpcAddress& address = slot->address;
  address.process = this_process();
  address.slot = number;
  address.data = slot->memory.data();
  address.event = slot->written.get();
  cuda::check(cudaIpcGetMemHandle(&address.memory, slot->memory.data()));
  cuda::check(cudaIpcGetEventHandle(&address.written, slot->written.get()));
  if (number == slots_.size()) slots_.emplace_back();
  if (slots_[number]) outgrown_.push_back(std::move(slots_[number]));
  slots_[number] = std::move(slot);
  return *slots_[number];
}

void OpenedSlots::close() {
  for (const auto& [handle, foreign] : foreign_)
    cuda::report(cudaIpcCloseMemHandle(foreign.memory), "closing another process's memory");
  foreign_.clear();
}

OpenedSlots::Opened OpenedSlots::open(const IpcAddress& address) {
  if (address.process == this_process()) return {address.data, address.event};
  const std::string handle{address.memory.reserved, sizeof address.memory.reserved};
  auto found = foreign_.find(handle);
  if (found == foreign_.end()) {
    cudaEvent_t event = nullptr;
    cuda::check(cudaIpcOpenEventHandle(&event, address.written));
    Foreign foreign{nullptr, cuda::Event{event}};
    cuda::check(
        cudaIpcOpenMemHandle(&foreign.memory, address.memory, cudaIpcMemLazyEnablePeerAccess));
    found = foreign_.emplace(handle, std::move(foreign)).first;
  }
  return {static_cast<const std::byte*>(found->second.memory), found->second.written.get()};
}

}  // namespace longhaul::comm
