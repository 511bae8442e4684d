#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <nccl.h>

#include "nccl/nccl_world.hpp"
#include "streams/stream.hpp"

namespace longhaul::on_host {

/// One rank's side of a communicator. Its work runs in streams, one piece after the other.
struct Comm {
  Comm(const SharedWorld::Id& world_id, int ranks, int own)
      : id{world_id}, world{world_id, ranks}, rank{own} {}

  SharedWorld::Id id;
  SharedWorld world;
  int rank, device = 0;
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<bool> aborted{false}, closing{false};
  std::shared_ptr<Mark> order = std::make_shared<Mark>();  ///< of its work
  std::string last_error;

  /// Waits until `ready`. False: it never will (this rank has aborted). A peer that is gone is an
  /// error, which stays until this rank aborts, as with NCCL.
  /// `needs`: the ranks without which it can never be ready; empty: all.
  [[nodiscard]] bool wait(const std::function<bool()>& ready,
                          const std::function<bool(int)>& needs = {});
  /// All ranks come here.
  [[nodiscard]] bool barrier();
  void fail(ncclResult_t code, const std::string& why);
};

/// Part of a message, seen from one side.
struct Transfer {
  bool sends = false;
  int peer = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0, moved = 0;
  bool begun = false, finished = false;
};

/// Moves them until all are through, or this rank has aborted.
void run_transfers(Comm& comm, std::vector<Transfer> transfers);

enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, reduce };
/// `count`: numbers of the result of one rank (all_gather: of what it brings). The result of a
/// reduce is written on rank 0 alone.
void run_collective(Comm& comm, Collective kind, const std::byte* mine, std::byte* result,
                    std::size_t count, ncclDataType_t type);

/// `mine` is read on `root` alone.
void run_broadcast(Comm& comm, int root, const std::byte* mine, std::byte* result,
                   std::size_t bytes);

[[nodiscard]] std::size_t bytes_of(ncclDataType_t type);

}  // namespace longhaul::on_host

struct on_host_comm {
  std::shared_ptr<longhaul::on_host::Comm> comm;
};
