#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace longhaul::bench {

/// NVML of the driver, loaded when it is there; its header comes with CUDA, which this may be built
/// without.
class Nvml {
public:
  /// `library`: libnvidia-ml.so.1, or an emulator of it.
  explicit Nvml(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] bool is_here() const;
  /// Since the driver was loaded, in mJ. nullopt: this GPU does not count it, or is not there.
  /// `uuid` as nvidia-smi writes it: "GPU-...".
  [[nodiscard]] std::optional<std::uint64_t> energy_mj(const std::string& uuid) const;
  /// Now, in mW.
  [[nodiscard]] std::optional<unsigned> power_mw(const std::string& uuid) const;

private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

}  // namespace longhaul::bench
