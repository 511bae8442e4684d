#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenario/model_costs.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::scenario {

/// A published model; `measured` where block times of it are known.
struct ModelPreset {
  Model model;
  std::optional<LayerTimes> measured;
};

[[nodiscard]] const std::vector<ModelPreset>& model_presets();

/// A published class of links; latency is one-way.
struct LinkPreset {
  std::string name;
  Duration latency;
  Bandwidth bandwidth;
};

[[nodiscard]] const std::vector<LinkPreset>& link_presets();

}  // namespace longhaul::scenario
