#pragma once

#include "harness/environment/host_facts.hpp"

namespace longhaul::bench {

/// `gpus`, `gpu_driver` and `nccl` of host_facts(): from /proc/driver/nvidia; where a container
/// hides that, from NVML. NCCL is loaded only where there is a GPU.
[[nodiscard]] nlohmann::json gpu_facts(const FactSources& sources);

}  // namespace longhaul::bench
