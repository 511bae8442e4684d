#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

/// Change that a block makes to its device's activation memory.
struct MemoryEffect {
  Bytes at_start;  ///< taken
  Bytes at_end;    ///< negative: released
};
/// F takes its chunk's activation at its start (only its input with recomputation, R takes the
/// rest); D releases half, W the other half, B all, at the end. The first part of a split block
/// takes, the last one releases. A chunk with an R anywhere is recomputed; the input that it keeps
/// meanwhile is as large as the message that brought it (chunk 0: as its own message), and at most
/// its activation.
class ActivationModel {
public:
  ActivationModel(const Schedule& schedule, const Scenario& scenario);
  [[nodiscard]] MemoryEffect effect(const Block& block) const;

private:
  struct Chunk {
    Bytes whole;  ///< the chunk's activation
    Bytes kept;   ///< the part that F takes; R takes the rest
  };
  std::vector<Chunk> chunks_;
};

/// Peak activation memory of each row, or of each replica's rows where replicas differ. Exact for
/// any timing, since one device is one sequence.
[[nodiscard]] std::vector<Bytes> peak_activation(const Schedule& schedule,
                                                 const Scenario& scenario);
/// The scenario's activation budget, plus what v chunks a device may add by rounding: the remainder
/// of a division by v, up to v - 1 bytes, lies on one chunk of each device.
[[nodiscard]] Bytes allowed_activation(const Schedule& schedule, const Scenario& scenario);
/// Devices (of any replica) whose peak exceeds the scenario's activation budget, ascending.
[[nodiscard]] std::vector<int> over_budget(const Schedule& schedule, const Scenario& scenario);

/// The smallest memory.budget, in millionths, that allows a schedule of this layout `needed` bytes
/// of activations on a device. It reads the counts of `schedule` alone. Rounded up, so that the
/// number works when it is typed.
[[nodiscard]] double least_budget(Bytes needed, const Schedule& schedule, const Scenario& scenario);

/// All the memory that one device needs.
struct DeviceNeed {
  DeviceId device{};
  Bytes weights, gradients, optimizer, activations, buffers;
  std::optional<Bytes> capacity;
  [[nodiscard]] Bytes total() const {
    return weights + gradients + optimizer + activations + buffers;
  }
  [[nodiscard]] bool fits() const { return !capacity || total() <= *capacity; }
};
/// Will it fit, before anything runs. bf16 weights and gradients; fp32 master weights and two
/// moments (6 times the weights), divided over all that hold the stage by ZeRO-1; one send and one
/// receive buffer of a message per neighbour and direction (of activations, of gradients).
/// `[memory] static` replaces the first three and is shown as weights. With copies of the model a
/// device holds the stages of each copy, once where two copies meet on one device.
[[nodiscard]] std::vector<DeviceNeed> device_memory(const Schedule& schedule,
                                                    const Scenario& scenario);

}  // namespace longhaul::schedule
