#pragma once

#include <optional>
#include <vector>

namespace longhaul {

/// Divides `layers` equal layers over stages of the relative `speeds`, at least one and at most
/// `most[i]` each, so that the slowest stage is as fast as possible (CrossPipe 8.1: faster devices
/// get more layers), then the next slowest; of equal stages the first get more, as in
/// layers_of_stages(). nullopt where so many layers do not fit or a stage would be empty.
[[nodiscard]] std::optional<std::vector<int>> balanced_layers(int layers,
                                                              const std::vector<double>& speeds,
                                                              const std::vector<int>& most);

}  // namespace longhaul
