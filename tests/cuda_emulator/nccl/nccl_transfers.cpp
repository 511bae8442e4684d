#include <algorithm>
#include <array>
#include <cstring>

#include <cuda_bf16.h>

#include "nccl/nccl_comm.hpp"

namespace longhaul::on_host {
namespace {

/// One step of the side that sends; true if anything happened.
bool step_send(Comm& comm, Transfer& transfer) {
  Box& box = comm.world.box(comm.rank, transfer.peer);
  if (!transfer.begun) {
    if (box.state != Box::idle) return false;
    box.bytes = transfer.bytes;
    box.filled = box.emptied = 0;
    box.state = Box::announced;
    return transfer.begun = true;
  }
  if (box.state == Box::done) {
    box.state = Box::idle;
    return transfer.finished = true;
  }
  if (box.state != Box::taken_up || box.filled != box.emptied || transfer.moved == transfer.bytes)
    return false;
  const std::size_t part = std::min(kChunk, transfer.bytes - transfer.moved);
  std::memcpy(box.data.data(), transfer.data + transfer.moved, part);
  transfer.moved += part;
  box.filled = transfer.moved;
  return true;
}

bool step_receive(Comm& comm, Transfer& transfer) {
  Box& box = comm.world.box(transfer.peer, comm.rank);
  if (!transfer.begun) {
    if (box.state != Box::announced) return false;
    if (box.bytes != transfer.bytes) {
      comm.fail(ncclInvalidUsage, "a receive of " + std::to_string(transfer.bytes) +
                                      " bytes meets a send of " + std::to_string(box.bytes));
      return false;
    }
    box.state = Box::taken_up;
    return transfer.begun = true;
  }
  if (transfer.moved == transfer.bytes) {
    box.state = Box::done;
    return transfer.finished = true;
  }
  const std::size_t filled = box.filled;
  if (filled == transfer.moved) return false;
  std::memcpy(transfer.data + transfer.moved, box.data.data(), filled - transfer.moved);
  transfer.moved = filled;
  box.emptied = filled;
  return true;
}

template <typename T>
float as_float(T value) {
  return static_cast<float>(value);
}

/// sum += values; bf16 in fp32, rounded once for each addition, as a ring of NCCL's does.
void add(std::byte* sum, const std::byte* values, std::size_t bytes, ncclDataType_t type) {
  const auto each = [&](auto example, auto&& plus) {
    using T = decltype(example);
    auto* const to = reinterpret_cast<T*>(sum);
    const auto* const from = reinterpret_cast<const T*>(values);
    for (std::size_t i = 0; i < bytes / sizeof(T); ++i) to[i] = plus(to[i], from[i]);
  };
  const auto plain = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
  switch (type) {
    case ncclInt8:
    case ncclUint8: return each(std::uint8_t{}, plain);
    case ncclInt32: return each(std::int32_t{}, plain);
    case ncclInt64: return each(std::int64_t{}, plain);
    case ncclFloat32: return each(float{}, plain);
    case ncclBfloat16:
      return each(__nv_bfloat16{}, [](__nv_bfloat16 a, __nv_bfloat16 b) {
        return __float2bfloat16_rn(as_float(a) + as_float(b));
      });
  }
}

/// Every rank brings `bytes` at `mine`; then `take(stages)` with what each has brought.
template <typename Take>
bool exchange(Comm& comm, const std::byte* mine, std::size_t bytes, Take&& take) {
  std::memcpy(comm.world->stage[static_cast<std::size_t>(comm.rank)].data(), mine, bytes);
  if (!comm.barrier()) return false;
  take();
  return comm.barrier();
}

void sum_stages(Comm& comm, std::byte* to, std::size_t bytes, ncclDataType_t type) {
  std::memcpy(to, comm.world->stage[0].data(), bytes);
  for (int rank = 1; rank < comm.world.ranks(); ++rank)
    add(to, comm.world->stage[static_cast<std::size_t>(rank)].data(), bytes, type);
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclFloat32: return 4;
    case ncclInt64: return 8;
  }
  return 0;
}

void run_transfers(Comm& comm, std::vector<Transfer> transfers) {
  const auto step_all = [&] {
    bool moved = false;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      Transfer& transfer = transfers[i];
      const bool follows =
          std::any_of(transfers.begin(), transfers.begin() + static_cast<std::ptrdiff_t>(i),
                      [&](const Transfer& earlier) {
                        return !earlier.finished && earlier.sends == transfer.sends &&
                               earlier.peer == transfer.peer;
                      });
      if (transfer.finished || follows) continue;
      moved |= transfer.sends ? step_send(comm, transfer) : step_receive(comm, transfer);
    }
    return moved;
  };
  const auto all_finished = [&] {
    return std::all_of(transfers.begin(), transfers.end(),
                       [](const Transfer& transfer) { return transfer.finished; });
  };
  // A rank that has done its part may have left: the others go on.
  const auto has_part = [&](int peer) {
    return std::any_of(transfers.begin(), transfers.end(), [&](const Transfer& transfer) {
      return !transfer.finished && transfer.peer == peer;
    });
  };
  while (!all_finished())
    if (!comm.wait(step_all, has_part)) return;
}

void run_collective(Comm& comm, Collective kind, const std::byte* mine, std::byte* result,
                    std::size_t count, ncclDataType_t type) {
  const std::size_t bytes = count * bytes_of(type);
  const int ranks = comm.world.ranks();
  alignas(16) std::array<std::byte, kChunk> sums{};  // result may be mine
  for (std::size_t first = 0; first < bytes; first += kChunk) {
    const std::size_t part = std::min(kChunk, bytes - first);
    if (kind == Collective::all_gather) {
      if (!exchange(comm, mine + first, part, [&] {
            for (int rank = 0; rank < ranks; ++rank)
              std::memcpy(result + static_cast<std::size_t>(rank) * bytes + first,
                          comm.world->stage[static_cast<std::size_t>(rank)].data(), part);
          }))
        return;
      continue;
    }
    const int parts = kind == Collective::reduce_scatter ? ranks : 1;
    for (int owner = 0; owner < parts; ++owner) {
      const std::byte* const from = mine + static_cast<std::size_t>(owner) * bytes + first;
      const bool takes =
          kind == Collective::reduce ? comm.rank == 0 : parts == 1 || owner == comm.rank;
      if (!exchange(comm, from, part, [&] {
            if (takes) sum_stages(comm, sums.data(), part, type);
          }))
        return;
      if (takes) std::memcpy(result + first, sums.data(), part);
    }
  }
}

void run_broadcast(Comm& comm, int root, const std::byte* mine, std::byte* result,
                   std::size_t bytes) {
  for (std::size_t first = 0; first < bytes; first += kChunk) {
    const std::size_t part = std::min(kChunk, bytes - first);
    const bool brings = comm.rank == root;
    if (!exchange(comm, brings ? mine + first : result, brings ? part : 0, [&] {
          std::memmove(result + first, comm.world->stage[static_cast<std::size_t>(root)].data(),
                       part);
        }))
      return;
  }
}

}  // namespace longhaul::on_host
