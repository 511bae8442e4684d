#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "cuda/handles.hpp"
#include "device/cuda/patterns.hpp"
#include "engine/payloads/synthetic_data_plane.hpp"

namespace longhaul::device {

/// SyntheticDataPlane whose payloads lie in the device's memory. They are made there before the
/// iteration begins, and checked there by a stream of its own, so that no one waits: what a check
/// found is known at the end of the iteration. Numbers of collectives stay in the host's memory.
class CudaSyntheticDataPlane final : public engine::DataPlane {
public:
  /// As SyntheticDataPlane. Belongs to a thread that has chosen device `index`.
  CudaSyntheticDataPlane(int index, const Plan& plan, Rank self, std::uint64_t seed, Bytes largest);
  ~CudaSyntheticDataPlane() override;

  void begin_iteration(std::uint32_t run, int iteration) override;
  [[nodiscard]] std::vector<engine::LateVerdict> end_iteration() override;
  [[nodiscard]] engine::Payload make(OpId send) override;
  [[nodiscard]] engine::Payload room(OpId recv) override;
  /// Right until end_iteration(), but for what is too short.
  [[nodiscard]] engine::Payloads::Verdict check(OpId recv, std::span<const std::byte> payload,
                                                engine::PayloadId& found) override;
  void corrupt(OpId send, engine::FaultKind how, engine::Payload& payload) override;
  [[nodiscard]] comm::Exchange exchange(OpId collective) override {
    return host_.exchange(collective);
  }
  [[nodiscard]] bool exchanged(OpId collective) override { return host_.exchanged(collective); }

private:
  struct Room {
    explicit Room(std::size_t size) : memory{size} {}
    cuda::DeviceBuffer memory;
    const CheckedPayload* check = nullptr;  ///< that still reads it, unless done
  };
  using Rooms = std::unordered_map<std::size_t, std::vector<std::unique_ptr<Room>>>;

  [[nodiscard]] std::size_t size_of(OpId message) const {
    return payloads_.bytes_for(plan_.op(message).size);
  }
  [[nodiscard]] engine::PayloadId id_of(OpId send) const {
    return engine::payload_id(plan_, send, run_, iteration_);
  }
  [[nodiscard]] const std::byte* window_of(const engine::PayloadId& id) const {
    return pattern_.data() + payloads_.window(id);
  }
  void make_rooms();
  [[nodiscard]] std::unique_ptr<Room> take_room(std::size_t size);
  [[nodiscard]] engine::Payload in(std::unique_ptr<Room> room);
  void fill(const engine::PayloadId& id, const engine::Payload& payload) const;

  const Plan& plan_;
  Rank self_;
  engine::SyntheticDataPlane host_;
  engine::Payloads payloads_;
  cuda::Stream stream_;
  cuda::DeviceBuffer pattern_;
  std::uint32_t run_ = 0;
  int iteration_ = 0;
  std::vector<OpId> made_here_;                         ///< sends whose payload is our own
  std::unordered_map<OpId, engine::Payload> prepared_;  ///< of these, for this iteration
  std::vector<OpId> receives_;                          ///< of this rank
  std::unordered_map<OpId, std::size_t> place_;         ///< in receives_
  cuda::PinnedMemory<CheckedPayload> checked_;          ///< by receive
  std::vector<bool> was_checked_;
  std::shared_ptr<Rooms> free_;  ///< shared: payloads may outlive this
  std::unordered_map<const std::byte*, Room*> room_at_;
};

}  // namespace longhaul::device
