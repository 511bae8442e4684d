#pragma once

#include <memory>
#include <string>

#include "comm/choice.hpp"
#include "comm/group/host_ranks.hpp"
#include "comm/payload_backend.hpp"

/// Backends for what lies in GPUs' memory. src/comm/cuda and nccl make them;
/// where they were not built in, src/comm/without_gpu says so.
namespace longhaul {

/// Collective over `world`. For payloads of device `index`, which becomes this thread's. `host`
/// outlives it. Throws Error where there is no such device.
[[nodiscard]] std::unique_ptr<PayloadBackend> make_device_backend(TransportKind kind,
                                                                  Transport& host,
                                                                  const mpi::Communicator& world,
                                                                  const HostRanks& host_ranks,
                                                                  int index);

/// "2.28.3"; empty where it is not built in.
[[nodiscard]] std::string nccl_version();
[[nodiscard]] std::unique_ptr<PayloadBackend> make_nccl_backend(const mpi::Communicator& world,
                                                                int index);

}  // namespace longhaul
