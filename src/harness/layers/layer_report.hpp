#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/layers/layer_parts.hpp"

namespace longhaul::harness {

/// Measurements of bench_layers.
struct LayerReport {
  nn::ModelShape shape;
  std::string device, notes;
  std::vector<LayerPart> parts;
  double most_flops = 0, most_bytes = 0;  ///< a second, of the references
};

[[nodiscard]] std::string layer_table(const LayerReport& report);
[[nodiscard]] nlohmann::ordered_json layer_record(const LayerReport& report,
                                                  const std::string& command_line);

}  // namespace longhaul::harness
