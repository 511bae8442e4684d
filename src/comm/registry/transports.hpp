#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "comm/group/host_ranks.hpp"
#include "comm/payload_backend.hpp"

/// Every transport has its name here and one entry in transports.cpp, with its needs and its maker.
/// The help, refusals and the choice follow from them.
namespace longhaul::comm {

/// Transports of payloads. `automatic` is only asked for, never chosen.
#define LONGHAUL_TRANSPORT_KINDS(X) \
  X(automatic, "auto") X(mpi, "mpi") X(nccl, "nccl") X(cuda_ipc, "cuda-ipc")
LONGHAUL_LISTED_ENUM(TransportKind, LONGHAUL_TRANSPORT_KINDS);
/// "auto, mpi, nccl or cuda-ipc", with that word before the last.
[[nodiscard]] std::string transport_names(const char* word = "or");
/// The kind that a value of --transport names. Throws Error that lists the names.
[[nodiscard]] TransportKind transport_kind_of(const std::string& text);

/// The memory in which a rank has its payloads.
struct PayloadPlace {
  int host = 0;                             ///< tells hosts apart
  std::string host_name;                    ///< for messages
  std::string gpu;                          ///< uuid; empty: payloads lie in the host's memory
  std::vector<std::string> beyond_reach{};  ///< uuids of GPUs of the host that this one cannot read
};

struct TransportChoice {
  TransportKind kind = TransportKind::mpi;
  std::string why;
};

/// Chooses the transport of the payloads of these ranks, given in order of rank. Throws Error where
/// `asked` cannot carry them; it names the ranks that prevent it, and another transport to use.
/// `with_nccl`: NCCL is built in.
[[nodiscard]] TransportChoice choose_transport(TransportKind asked,
                                               const std::vector<PayloadPlace>& ranks,
                                               bool with_nccl);

/// Collective over `world`: makes what was chosen, for payloads of device `index`, which becomes
/// this thread's. `host` outlives it. Throws Error where there is no such device.
[[nodiscard]] std::unique_ptr<PayloadBackend> make_device_backend(TransportKind kind,
                                                                  Transport& host,
                                                                  const Communicator& world,
                                                                  const HostRanks& host_ranks,
                                                                  int index);

/// Collective over `world`: what carries messages between these ranks, processes or threads.
[[nodiscard]] std::unique_ptr<Transport> make_host_transport(const Communicator& world,
                                                             const HostRanks& host_ranks);

}  // namespace longhaul::comm
