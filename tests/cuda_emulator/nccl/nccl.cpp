#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <thread>

#include <nccl.h>
#include <unistd.h>

#include "device.hpp"
#include "device_memory/memory.hpp"
#include "nccl/nccl_comm.hpp"

namespace longhaul::on_host {

bool Comm::wait(const std::function<bool()>& ready, const std::function<bool(int)>& needs) {
  for (unsigned looks = 0; !aborted; ++looks) {
    if (state != ncclRemoteError && state != ncclInvalidUsage && ready()) return true;
    if (looks % 64 == 63 && state == ncclSuccess)
      for (int peer = 0; peer < world.ranks(); ++peer)
        if (world.is_gone(peer) && (!needs || needs(peer)) && !ready())
          fail(ncclRemoteError, "rank " + std::to_string(peer) + " is gone");
    const timespec nap{0, looks < 64 ? 5'000 : 100'000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
  }
  return false;
}

bool Comm::barrier() {
  const std::int32_t round = world->round;
  if (world->arrived.fetch_add(1) + 1 == world.ranks()) {
    world->arrived = 0;
    world->round = round + 1;
    return true;
  }
  return wait([&] { return world->round != round; });
}

void Comm::fail(ncclResult_t code, const std::string& why) {
  last_error = why;
  state = code;
  std::fprintf(stderr, "nccl_on_host: rank %d of %d: %s\n", rank, world.ranks(), why.c_str());
}

namespace {

bool may_share_devices() { return std::getenv("LONGHAUL_ON_HOST_NCCL_SHARED_DEVICE") != nullptr; }

/// As NCCL 2.28 does: one rank for each GPU.
std::optional<std::string> shared_device(const Comm& comm) {
  for (int a = 0; a < comm.world.ranks(); ++a)
    for (int b = a + 1; b < comm.world.ranks(); ++b)
      if (comm.world->device[static_cast<std::size_t>(a)] ==
          comm.world->device[static_cast<std::size_t>(b)])
        return "Duplicate GPU detected : rank " + std::to_string(a) + " and rank " +
               std::to_string(b) + " both on CUDA device " +
               std::to_string(comm.world->device[static_cast<std::size_t>(a)].load() - 1);
  return std::nullopt;
}

void join(const std::shared_ptr<Comm>& comm) {
  const auto own = static_cast<std::size_t>(comm->rank);
  SharedWorld& world = comm->world;
  world->process[own] = getpid();
  world->device[own] = comm->device + 1;
  ++world->joined;
  if (!comm->wait([&] { return world->joined >= world.ranks(); })) return;
  SharedWorld::close_id(comm->id);
  const auto twice = shared_device(*comm);
  if (twice && !may_share_devices()) return comm->fail(ncclInvalidUsage, *twice);
  comm->state = ncclSuccess;
}

/// LONGHAUL_ON_HOST_NCCL_ERROR=R:N: the N-th transfer (from 0) that mpirun's rank R gives to a
/// stream ends in an error that only ncclCommGetAsyncError tells of, as one of the network does.
bool is_to_break() {
  const char* const asked = std::getenv("LONGHAUL_ON_HOST_NCCL_ERROR");
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  int failing_rank = 0, transfer = 0;
  if (asked == nullptr || rank == nullptr ||
      std::sscanf(asked, "%d:%d", &failing_rank, &transfer) != 2 || failing_rank != std::atoi(rank))
    return false;
  static std::atomic<int> given = 0;
  return given++ == transfer;
}

void break_now(Comm& comm) {
  comm.fail(ncclSystemError, "an error made up for a test");
  static_cast<void>(comm.wait([] { return false; }));
}

/// An operation asked of a communicator between ncclGroupStart and ncclGroupEnd.
struct Asked {
  std::shared_ptr<Comm> comm;
  cudaStream_t stream;
  std::optional<Transfer> transfer;
  std::function<void()> collective;
};
thread_local int depth = 0;
thread_local std::vector<Asked> asked;

/// Puts work in the order of the communicator: after its last work, and its next work after it.
void put(const std::shared_ptr<Comm>& comm, const std::vector<cudaStream_t>& streams,
         std::function<void()> work) {
  const auto first = queue_of(streams.front());
  for (const cudaStream_t stream : streams) {
    if (stream == streams.front()) continue;
    const auto mark = std::make_shared<Mark>();
    queue_of(stream)->put_mark(mark, 1);
    first->put_wait(mark, 1);
  }
  first->put_wait(comm->order, comm->order->recorded);
  first->put(std::move(work));
  const std::uint32_t count = ++comm->order->recorded;
  first->put_mark(comm->order, count);
  for (const cudaStream_t stream : streams)
    if (stream != streams.front()) queue_of(stream)->put_wait(comm->order, count);
}

ncclResult_t put_all() {
  std::vector<Asked> all = std::move(asked);
  asked.clear();
  std::map<Comm*, std::pair<std::vector<cudaStream_t>, std::vector<Transfer>>> transfers;
  std::vector<std::shared_ptr<Comm>> order;
  for (Asked& one : all) {
    if (!one.transfer) {
      put(one.comm, {one.stream}, std::move(one.collective));
      continue;
    }
    auto& [streams, list] = transfers[one.comm.get()];
    if (list.empty()) order.push_back(one.comm);
    streams.push_back(one.stream);
    list.push_back(*one.transfer);
  }
  for (const auto& comm : order) {
    auto& [streams, list] = transfers[comm.get()];
    put(comm, streams, [comm, list, breaks = is_to_break()] {
      if (breaks) return break_now(*comm);
      run_transfers(*comm, list);
    });
  }
  return ncclSuccess;
}

bool on_a_device(const void* data, std::size_t bytes) {
  const auto piece = find_allocation(data);
  return bytes == 0 || (piece && holds(*piece, data, bytes));
}

ncclResult_t ask(ncclComm_t comm, Asked what) {
  if (comm == nullptr || !queue_of(what.stream)) return ncclInvalidArgument;
  if (sticky_error() != cudaSuccess) return ncclUnhandledCudaError;
  if (comm->comm->state != ncclSuccess || comm->comm->closing) {
    comm->comm->last_error = "the communicator is not ready, or has failed";
    return ncclInvalidUsage;
  }
  what.comm = comm->comm;
  asked.push_back(std::move(what));
  return depth > 0 ? ncclSuccess : put_all();
}

ncclResult_t ask_collective(ncclComm_t comm, cudaStream_t stream, Collective kind, const void* mine,
                            void* result, std::size_t count, ncclDataType_t type) {
  if (comm == nullptr) return ncclInvalidArgument;
  const std::size_t bytes = count * bytes_of(type);
  const auto ranks = static_cast<std::size_t>(comm->comm->world.ranks());
  const std::size_t in = kind == Collective::reduce_scatter ? bytes * ranks : bytes;
  const std::size_t out = kind == Collective::all_gather ? bytes * ranks : bytes;
  const bool gets = kind != Collective::reduce || comm->comm->rank == 0;
  if (!on_a_device(mine, in) || (gets && !on_a_device(result, out))) return ncclInvalidArgument;
  return ask(comm, {nullptr, stream, std::nullopt, [=, shared = comm->comm] {
                      run_collective(*shared, kind, static_cast<const std::byte*>(mine),
                                     static_cast<std::byte*>(result), count, type);
                    }});
}

ncclResult_t ask_broadcast(ncclComm_t comm, cudaStream_t stream, int root, const void* mine,
                           void* result, std::size_t bytes) {
  if (comm == nullptr || root < 0 || root >= comm->comm->world.ranks()) return ncclInvalidArgument;
  const bool sends = comm->comm->rank == root;
  if (!on_a_device(result, bytes) || (sends && !on_a_device(mine, bytes)))
    return ncclInvalidArgument;
  return ask(comm, {nullptr, stream, std::nullopt, [=, shared = comm->comm] {
                      run_broadcast(*shared, root, static_cast<const std::byte*>(mine),
                                    static_cast<std::byte*>(result), bytes);
                    }});
}

ncclResult_t ask_transfer(ncclComm_t comm, cudaStream_t stream, bool sends, const void* data,
                          std::size_t count, ncclDataType_t type, int peer) {
  const std::size_t bytes = count * bytes_of(type);
  if (comm == nullptr || peer < 0 || peer >= comm->comm->world.ranks() || !on_a_device(data, bytes))
    return ncclInvalidArgument;
  Transfer transfer;
  transfer.sends = sends;
  transfer.peer = peer;
  transfer.data = static_cast<std::byte*>(const_cast<void*>(data));
  transfer.bytes = bytes;
  return ask(comm, {nullptr, stream, transfer, nullptr});
}

ncclResult_t end(ncclComm_t comm, bool abort) {
  if (comm == nullptr) return ncclSuccess;
  const auto shared = comm->comm;
  if (abort) shared->aborted = true;
  shared->closing = true;
  shared->order->wait(shared->order->recorded);
  shared->world->gone[static_cast<std::size_t>(shared->rank)] = 1;
  delete comm;
  return ncclSuccess;
}

}  // namespace
}  // namespace longhaul::on_host

using namespace longhaul::on_host;

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_MAJOR * 10'000 + NCCL_MINOR * 100 + NCCL_PATCH;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm == nullptr ? "" : comm->comm->last_error.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const auto made = longhaul::on_host::SharedWorld::make_id();
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &made, sizeof made);
  return made.file < 0 ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (ranks < 1 || ranks > longhaul::on_host::kMostRanks || rank < 0 || rank >= ranks)
    return ncclInvalidArgument;
  longhaul::on_host::SharedWorld::Id where{};
  std::memcpy(&where, &id, sizeof where);
  const auto made = std::make_shared<longhaul::on_host::Comm>(where, ranks, rank);
  if (!made->world.is_open()) return ncclSystemError;
  made->device = longhaul::on_host::current_device();
  *comm = new on_host_comm{made};
  if (config != nullptr && config->blocking == 0) {
    std::thread{[made] { join(made); }}.detach();
    return ncclInProgress;
  }
  join(made);
  return made->state;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, nullptr);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const longhaul::on_host::Comm& mine = *comm->comm;
  const bool working = mine.closing && !mine.order->has_reached(mine.order->recorded);
  *error = mine.state == ncclSuccess && working ? ncclInProgress : mine.state.load();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->comm->closing = true;
  ncclResult_t state = ncclSuccess;
  ncclCommGetAsyncError(comm, &state);
  return state;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) { return end(comm, false); }
ncclResult_t ncclCommAbort(ncclComm_t comm) { return end(comm, true); }

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->comm->world.ranks();
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  *device = comm->comm->device;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  return --depth > 0 ? ncclSuccess : put_all();
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return ask_transfer(comm, stream, true, data, count, type, peer);
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return ask_transfer(comm, stream, false, data, count, type, peer);
}
ncclResult_t ncclAllReduce(const void* mine, void* result, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return ask_collective(comm, stream, longhaul::on_host::Collective::all_reduce, mine, result,
                        count, type);
}
ncclResult_t ncclReduceScatter(const void* mine, void* result, std::size_t result_count,
                               ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t stream) {
  return ask_collective(comm, stream, longhaul::on_host::Collective::reduce_scatter, mine, result,
                        result_count, type);
}
ncclResult_t ncclAllGather(const void* mine, void* result, std::size_t mine_count,
                           ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  return ask_collective(comm, stream, longhaul::on_host::Collective::all_gather, mine, result,
                        mine_count, type);
}
ncclResult_t ncclBroadcast(const void* mine, void* result, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return ask_broadcast(comm, stream, root, mine, result, count * longhaul::on_host::bytes_of(type));
}
ncclResult_t ncclReduce(const void* mine, void* result, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t, int root, ncclComm_t comm, cudaStream_t stream) {
  if (root != 0) return ncclInvalidArgument;  // the transport asks for no other
  return ask_collective(comm, stream, longhaul::on_host::Collective::reduce, mine, result, count,
                        type);
}
