#pragma once

#include <filesystem>

namespace longhaul {

/// Where a server of NVIDIA's Multi-Process Service listens for processes of this environment:
/// CUDA_MPS_PIPE_DIRECTORY, or /tmp/nvidia-mps.
[[nodiscard]] std::filesystem::path mps_directory();

/// Does one listen there? Its control daemon holds the socket `control`; a name that a dead one
/// has left answers no one. Asks the file system and the socket alone, no CUDA; sends nothing.
[[nodiscard]] bool mps_listens(const std::filesystem::path& directory);

/// How the ranks of a host share a GPU.
enum class GpuSharing {
  processes,           ///< each with a context of its own: they take turns
  processes_with_mps,  ///< the same, in one context of the service: side by side
  threads,             ///< of one process, in its one context: side by side
};
/// Of this rank.
[[nodiscard]] GpuSharing gpu_sharing();
/// "processes", "processes with MPS", "threads of one process".
[[nodiscard]] const char* name_of(GpuSharing sharing);

}  // namespace longhaul
