#pragma once

#include <filesystem>

#include "base/listed_enum.hpp"
#include "comm/group/host_ranks.hpp"

namespace longhaul::host {

/// The GPU of this rank, among those that its process sees: one each as long as there are enough,
/// then shared by neighbours, as bind_ranks has it (host/binding.hpp). 0 where there are none.
[[nodiscard]] int accelerator_of(const comm::HostRanks& host_ranks);

/// Where a server of NVIDIA's Multi-Process Service listens for processes of this environment:
/// CUDA_MPS_PIPE_DIRECTORY, or /tmp/nvidia-mps.
[[nodiscard]] std::filesystem::path mps_directory();

/// Does one listen there? Its control daemon holds the socket `control`; a name that a dead one
/// has left answers no one. Asks the file system and the socket alone, no CUDA; sends nothing.
[[nodiscard]] bool mps_listens(const std::filesystem::path& directory);

/// How the ranks of a host use a GPU that several of them have: as processes, each with a
/// context of its own, which take turns; the same in the one context of the service, side by side;
/// as threads of one process, in its one context, side by side.
#define LONGHAUL_GPU_SHARINGS(X) \
  X(processes, "processes")      \
  X(processes_with_mps, "processes with MPS") X(threads, "threads of one process")
LONGHAUL_LISTED_ENUM(GpuSharing, LONGHAUL_GPU_SHARINGS);
/// Of this rank.
[[nodiscard]] GpuSharing gpu_sharing();

}  // namespace longhaul::host
