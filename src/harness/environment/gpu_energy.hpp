#pragma once

#include <memory>
#include <optional>
#include <string>

namespace longhaul::harness {

/// Energy that one GPU has drawn since construction: its own counter where it has one, else power
/// sampled every 50 ms.
class GpuEnergy {
public:
  /// `nvml`: libnvidia-ml.so.1, or an emulator of it.
  GpuEnergy(const std::string& uuid, const std::string& nvml);
  ~GpuEnergy();
  GpuEnergy(const GpuEnergy&) = delete;
  GpuEnergy& operator=(const GpuEnergy&) = delete;

  /// nullopt: the driver tells nothing.
  [[nodiscard]] std::optional<double> joules() const;
  /// "counter", "power samples", "none".
  [[nodiscard]] const char* source() const;

private:
  struct Sampler;
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace longhaul::harness
