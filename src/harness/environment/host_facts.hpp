#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::harness {

/// Root directory and libraries in which facts are looked up; tests give others.
struct FactSources {
  std::filesystem::path root = "/";
  std::string nvml = "libnvidia-ml.so.1";
  std::string nccl = "libnccl.so.2";
};

/// A record's facts of its host that hwloc does not know: `governor` (of the cores' clocks,
/// several of them with commas), `gpus` (name and PCI address of each), `gpu_driver`, `nccl`. Null
/// stands for a fact that is absent or unknown. Needs neither CUDA nor MPI.
[[nodiscard]] nlohmann::json host_facts(const FactSources& sources = {});

/// For programs without hwloc: name, kernel, processor, threads (online) and memory_bytes, and
/// the facts above.
[[nodiscard]] nlohmann::json whole_host_facts(const FactSources& sources = {});

/// `gpus`, `gpu_driver` and `nccl` of host_facts(): from /proc/driver/nvidia; where a container
/// hides that, from NVML. NCCL is loaded only where there is a GPU.
[[nodiscard]] nlohmann::json gpu_facts(const FactSources& sources);

}  // namespace longhaul::harness
