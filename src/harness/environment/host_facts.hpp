#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace longhaul::bench {

/// Where facts are looked up: another root and other libraries for tests.
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

}  // namespace longhaul::bench
