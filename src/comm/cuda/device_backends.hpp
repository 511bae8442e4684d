#pragma once

#include <memory>
#include <string>

#include "comm/group/host_ranks.hpp"
#include "comm/payload_backend.hpp"

/// Backends for what lies in GPUs' memory. src/comm/cuda and nccl make them;
/// where they were not built in, src/comm/without_gpu says so.
namespace longhaul::comm {

/// A rank and the transport of its host's memory, for which a backend is made. Precondition: `host`
/// outlives the backend.
struct BackendPlace {
  Transport& host;
  const Communicator& world;
  const HostRanks& host_ranks;
  int index;  ///< of the device, which becomes this thread's
};

/// Each is collective over `place.world`, and throws Error where there is no such device.
[[nodiscard]] std::unique_ptr<PayloadBackend> make_staged_backend(const BackendPlace& place);
[[nodiscard]] std::unique_ptr<PayloadBackend> make_ipc_backend(const BackendPlace& place);
[[nodiscard]] std::unique_ptr<PayloadBackend> make_nccl_backend(const BackendPlace& place);

/// "2.28.3"; empty where it is not built in.
[[nodiscard]] std::string nccl_version();

}  // namespace longhaul::comm
