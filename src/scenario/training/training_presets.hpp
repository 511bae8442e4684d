#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenario/training.hpp"

namespace longhaul::scenario {

/// A model that replicas of one stage train, with the throughput of GPUs that it was measured on.
struct TrainingPreset {
  std::string name;
  std::int64_t parameters = 0;
  struct OnGpu {
    std::string gpu;
    GpuThroughput throughput;
  };
  std::vector<OnGpu> on;
};

/// StellaTrain, section 5 (parameters) and table 2 (throughput). GPT-2 and the V100 are not in the
/// table: docs/training.md says what they assume.
[[nodiscard]] const std::vector<TrainingPreset>& training_presets();
/// GPUs that presets know: "rtx4090", ...
[[nodiscard]] std::vector<std::string> training_gpus();

/// A name as people write it: small letters, and "-" for "_".
[[nodiscard]] std::string model_name(std::string_view written);
/// The same of a GPU, without "-", "_" and blanks: "RTX 4090" is "rtx4090".
[[nodiscard]] std::string gpu_name(std::string_view written);
/// nullptr where there is none of that name.
[[nodiscard]] const TrainingPreset* find_training_preset(std::string_view name);
/// Of the preset on the GPU; both by their names there.
[[nodiscard]] GpuThroughput throughput_of(const TrainingPreset& preset, std::string_view gpu);

}  // namespace longhaul::scenario
