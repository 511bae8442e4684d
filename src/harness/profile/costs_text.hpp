#pragma once

#include <string>
#include <vector>

#include "harness/profile/model_profile.hpp"

namespace longhaul::harness {

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
