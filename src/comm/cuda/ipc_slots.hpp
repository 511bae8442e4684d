#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/group/host_ranks.hpp"
#include "comm/payload_backend.hpp"
#include "cuda/handles.hpp"

namespace longhaul::comm {

/// Address at which the receiver fetches a payload; part of the announcement.
struct IpcAddress {
  std::uint64_t process = 0;  ///< tells processes apart
  std::uint32_t slot = 0;
  std::uint32_t reserved = 0;
  cudaIpcMemHandle_t memory{};
  cudaIpcEventHandle_t written{};
  /// The same for threads of that process, which share its context.
  std::byte* data = nullptr;
  cudaEvent_t event = nullptr;
};
static_assert(sizeof(IpcAddress) <= sizeof(PayloadDetails));

/// Flags of the slots that are taken, by pair of ranks, in memory that the ranks of the host share.
/// A sender takes a slot, its receiver frees it.
class SlotFlags {
public:
  static constexpr std::uint32_t kSlots = 8;  ///< of an ordered pair of ranks

  /// Collective over the ranks of this host.
  explicit SlotFlags(const HostRanks& host_ranks);
  [[nodiscard]] std::atomic<std::uint32_t>& flag(Rank from, Rank to, std::uint32_t slot) const;
  /// This rank has closed what it opened. Waits for the others of the host to have done so, but not
  /// for one that does not reach it.
  void leave() const;

private:
  [[nodiscard]] std::atomic<std::uint32_t>* words() const;
  const HostRanks& host_ranks_;
  SharedMemory memory_;
};

/// The sender's: device memory that other processes can open, each with an event that says that it
/// has been written. Opened once by its receiver, so it stays as long as this.
class SlotsToPeer {
public:
  SlotsToPeer(const SlotFlags& flags, Rank self, Rank peer)
      : flags_{flags}, self_{self}, peer_{peer} {}

  struct Slot {
    explicit Slot(std::size_t bytes) : memory{bytes} {}
    cuda::DeviceBuffer memory;
    cuda::Event written{cuda::Timing::off, cuda::Sharing::between_processes};
    IpcAddress address{};
  };
  /// A free one with room for `bytes`, now taken; nullptr: the receiver has to free one.
  [[nodiscard]] Slot* take(std::size_t bytes);

private:
  Slot& make(std::uint32_t number, std::size_t bytes);

  const SlotFlags& flags_;
  Rank self_, peer_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Slot>> outgrown_;  ///< still open on the other side
};

/// The receiver's: what it has opened.
class OpenedSlots {
public:
  struct Opened {
    const std::byte* data = nullptr;
    cudaEvent_t written = nullptr;
  };
  [[nodiscard]] Opened open(const IpcAddress& address);
  void close();

private:
  struct Foreign {
    void* memory = nullptr;
    cuda::Event written;
  };
  std::map<std::string, Foreign> foreign_;  ///< by memory handle
};

}  // namespace longhaul::comm
