#include "scenario/training/training_presets.hpp"

#include <algorithm>
#include <cctype>

#include "base/error.hpp"

namespace longhaul::scenario {
namespace {

/// Table 2 has RTX 2080 Ti, 3090 and 4090. In FP32 a V100 is "even slower" than the 2080 Ti
/// (footnote 1): 0.9 of it is an assumption.
TrainingPreset measured_on_gpus(std::string name, std::int64_t parameters, GpuThroughput rtx2080ti,
                                GpuThroughput rtx3090, GpuThroughput rtx4090) {
  constexpr double kV100 = 0.9;
  return {std::move(name),
          parameters,
          {{"rtx4090", rtx4090},
           {"rtx3090", rtx3090},
           {"rtx2080ti", rtx2080ti},
           {"v100", {rtx2080ti.alpha, kV100 * rtx2080ti.beta}}}};
}

}  // namespace

const std::vector<TrainingPreset>& training_presets() {
  // GPT-2: 17.8 iterations a second on two RTX 4090 (5.1). A batch of 8 on each is an assumption,
  // and so is that GPUs differ as they do for ViT-B-16.
  constexpr double kGpt2 = 8 * 17.8;
  static const std::vector<TrainingPreset> presets{
      measured_on_gpus("resnet152", 58'000'000, {32, 118}, {48, 183}, {64, 270}),
      measured_on_gpus("vit-b-16", 88'000'000, {20, 99}, {32, 148}, {28, 300}),
      measured_on_gpus("swin-b", 139'000'000, {16, 80}, {36, 112}, {40, 217}),
      measured_on_gpus("gpt2", 123'600'000, {8, kGpt2 * 99 / 300}, {8, kGpt2 * 148 / 300},
                       {8, kGpt2}),
  };
  return presets;
}

std::vector<std::string> training_gpus() {
  std::vector<std::string> names;
  for (const auto& [gpu, throughput] : training_presets().front().on) names.push_back(gpu);
  return names;
}

std::string model_name(std::string_view written) {
  std::string name{written};
  for (char& c : name)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string gpu_name(std::string_view written) {
  std::string name = model_name(written);
  std::erase_if(name, [](char c) { return c == '-' || c == ' '; });
  return name;
}

const TrainingPreset* find_training_preset(std::string_view name) {
  const auto& all = training_presets();
  const auto found = std::ranges::find(all, model_name(name), &TrainingPreset::name);
  return found == all.end() ? nullptr : &*found;
}

GpuThroughput throughput_of(const TrainingPreset& preset, std::string_view gpu) {
  const auto found = std::ranges::find(preset.on, gpu, &TrainingPreset::OnGpu::gpu);
  LONGHAUL_ASSERT(found != preset.on.end(), "no throughput of {} on {}", preset.name, gpu);
  return found->throughput;
}

}  // namespace longhaul::scenario
