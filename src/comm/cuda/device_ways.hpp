#pragma once

#include <memory>
#include <string>

#include "comm/choice.hpp"
#include "comm/group/board.hpp"
#include "comm/payload_way.hpp"

/// Backends for what lies in GPUs' memory. src/comm/cuda and nccl make them;
/// where they were not built in, src/comm/without_gpu says so.
namespace longhaul {

/// Collective over `world`. For payloads of device `index`, which becomes this thread's. `host`
/// outlives it. Throws Error where there is no such device.
[[nodiscard]] std::unique_ptr<PayloadWay> make_device_way(TransportKind kind, Transport& host,
                                                          const mpi::Communicator& world,
                                                          const Board& board, int index);

/// "2.28.3"; empty where it is not built in.
[[nodiscard]] std::string nccl_version();
[[nodiscard]] std::unique_ptr<PayloadWay> make_nccl_way(const mpi::Communicator& world, int index);

}  // namespace longhaul
