#pragma once

#include <memory>
#include <string>

#include "runtime/host/board.hpp"
#include "runtime/transport/choice.hpp"
#include "runtime/transport/payload_way.hpp"

/// NetworkRoutes for what lies in GPUs' memory. src/runtime/transport/cuda and nccl make them;
/// where they were not built in, src/runtime/without_cuda.cpp and without_nccl.cpp say so.
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
