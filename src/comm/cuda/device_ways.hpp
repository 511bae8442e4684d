#pragma once

#include <memory>
#include <string>

#include "comm/group/board.hpp"
#include "comm/payload_way.hpp"

/// Backends for what lies in GPUs' memory. src/comm/cuda and nccl make them;
/// where they were not built in, src/comm/without_gpu says so.
namespace longhaul {

/// Where a backend stands. `host` outlives it.
struct BackendPlace {
  Transport& host;
  const mpi::Communicator& world;
  const Board& board;
  int index;  ///< of the device, which becomes this thread's
};

/// Each is collective over `place.world`, and throws Error where there is no such device.
[[nodiscard]] std::unique_ptr<PayloadWay> make_staged_way(const BackendPlace& place);
[[nodiscard]] std::unique_ptr<PayloadWay> make_ipc_way(const BackendPlace& place);
[[nodiscard]] std::unique_ptr<PayloadWay> make_nccl_way(const BackendPlace& place);

/// "2.28.3"; empty where it is not built in.
[[nodiscard]] std::string nccl_version();

}  // namespace longhaul
