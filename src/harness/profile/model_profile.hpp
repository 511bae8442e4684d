#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/ranks.hpp"
#include "harness/collectives/collective_measurement.hpp"
#include "harness/options/stopping.hpp"
#include "harness/profile/operator_probe.hpp"
#include "harness/profile/stage_probe.hpp"
#include "harness/profile/task_table.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::harness {

/// Chunks of layers that one device computes, and the cost of a microbatch of them. Devices that
/// hold as many layers of each kind in each chunk are measured once.
struct DeviceProfile {
  std::string name;  ///< "stage 0", "stages 1-6", or the part of the model
  std::vector<nn::LayerRange> chunks;
  std::vector<DeviceId> devices;  ///< empty: a part of the model
  BlockSamples samples{};         ///< of all ranks that measured it
  StageMemory memory{};
  float loss = 0;
};

/// Measurements of bench_profile; complete on rank 0.
struct ModelProfile {
  nn::ModelShape shape;
  NumberType type{};
  std::vector<DeviceProfile> devices;
  std::vector<DeviceProfile> parts;  ///< embedding, one layer, head
  std::vector<double> message;       ///< ns, one way
  std::vector<OperatorTimes> operators;
  std::vector<CollectiveMeasurement> collectives{};  ///< over the ranks that measured
  std::optional<TaskProfile> tasks{};                ///< of the operators, where they were traced

  [[nodiscard]] Bytes message_size() const {
    return Bytes{static_cast<std::int64_t>(shape.boundary() * bytes_of(type))};
  }
  [[nodiscard]] const DeviceProfile& of_device(DeviceId device) const;
};

struct ProfileOptions {
  StoppingRule rule;  ///< of rounds
  Duration patience{};
  /// On every rank, before each round and part: how many parts are done, of how many, and what is
  /// measured now.
  std::function<void(int done, int total, const std::string& now)> progress{};
  bool tasks = false;                ///< trace the operators' tasks once all is measured
  cuda::TaskTrace* trace = nullptr;  ///< of rank 0, where tasks are traced
};

/// The chunks of each device of `schedule`, not measured yet. Throws Error where the scenario has
/// no model that real layers can be made of, or a chunk would hold none.
[[nodiscard]] std::vector<DeviceProfile> profiled_devices(const Schedule& schedule,
                                                          const Scenario& scenario);

/// Collective: measures the chunks of each device of `schedule`, all ranks at once, each another
/// device. Ranks that share a machine keep each other as busy as in a run. Throws Error as
/// profiled_devices() does.
[[nodiscard]] ModelProfile profile_model(engine::Ranks& ranks, nn::TensorOps& math,
                                         const Scenario& scenario, const Schedule& schedule,
                                         const ProfileOptions& options);

/// Origin of measured costs (program, time, method): [measured] of a costs file.
struct CostsOrigin {
  std::string device;  ///< "cpu: name of the processor", or the GPU's name
  std::string schedule;
  int chunks = 1;  ///< on a device
  int ranks = 1;   ///< that measured at the same time
  std::string when;
  std::string command;
  std::string commit;
};

/// The file that `costs.file` of a scenario names: medians of what was measured, sizes in real
/// bytes (docs/profile.md). Rank 0's.
[[nodiscard]] std::string costs_text(const ModelProfile& profile, const Scenario& scenario,
                                     const CostsOrigin& origin);

/// The largest 95% interval of a median that is in the file, over that median; 0 where there
/// are too few samples for any.
[[nodiscard]] double widest_interval(const ModelProfile& profile);

}  // namespace longhaul::harness
