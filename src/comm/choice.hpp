#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/listed_enum.hpp"

namespace longhaul {

/// The carriers of payloads. `automatic` is only asked for.
#define LONGHAUL_TRANSPORT_KINDS(X) \
  X(automatic, "auto") X(mpi, "mpi") X(nccl, "nccl") X(cuda_ipc, "cuda-ipc")
LONGHAUL_LISTED_ENUM(TransportKind, LONGHAUL_TRANSPORT_KINDS);
/// The value of --transport. Throws Error that lists the names.
[[nodiscard]] TransportKind transport_kind_of(const std::string& text);

/// Where a rank has its payloads.
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

/// Chooses the carrier for the payloads of these ranks, in order of rank. Throws Error where
/// `asked` cannot: names the ranks that stand in the way, and what to use instead. `with_nccl`: it
/// is built in.
[[nodiscard]] TransportChoice choose_transport(TransportKind asked,
                                               const std::vector<PayloadPlace>& ranks,
                                               bool with_nccl);

}  // namespace longhaul
