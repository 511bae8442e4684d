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

/// The nodes of a published cluster: GPUs, and rates each way.
struct NodePreset {
  std::string name;
  int gpus = 1;
  Bandwidth device;    ///< of a GPU's port inside its node
  Bandwidth internal;  ///< of a node, to the others of its datacenter
};

[[nodiscard]] const std::vector<NodePreset>& node_presets();

}  // namespace longhaul::scenario
