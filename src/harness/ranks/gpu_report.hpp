#pragma once

#include <memory>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "engine/ranks.hpp"
#include "harness/environment/gpu_energy.hpp"
#include "harness/ranks/device_and_transport.hpp"

namespace longhaul::harness {

/// Energy that the GPUs of a run drew, and the errors of their clocks. Construct before the
/// iterations.
class GpuReport {
public:
  GpuReport(const engine::Ranks& ranks, DeviceKind kind);

  /// Collective, to be called after the iterations: "accelerators" of a record's environment on
  /// rank 0, one entry for each GPU that was used; nothing where none was.
  void add_to(nlohmann::json& environment) const;

private:
  const engine::Ranks& ranks_;
  std::optional<int> index_;  ///< of this rank's GPU
  std::unique_ptr<GpuEnergy> energy_;
};

}  // namespace longhaul::harness
