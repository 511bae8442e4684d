#include "comm/mpi/own_collectives.hpp"

#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/index.hpp"
#include "comm/group/session.hpp"
#include "comm/mpi/types.hpp"

namespace longhaul::comm {
namespace {

Communicator group_of(const Communicator& world, std::span<const Rank> members) {
  constexpr int kTag = 1;
  std::vector<int> numbers;
  for (const Rank member : members) numbers.push_back(static_cast<int>(member));
  return world.subgroup(numbers, kTag);
}

int counted(std::size_t bytes, NumberType type) {
  const std::size_t count = bytes / bytes_of(type);
  if (count > std::numeric_limits<int>::max())
    fail("a collective of {} numbers is more than MPI can count (2^31 - 1). Use less.", count);
  return static_cast<int>(count);
}

}  // namespace

OwnCollectives::OwnCollectives(const Communicator& world, std::span<const Rank> members)
    : group_{group_of(world, members)} {}

void OwnCollectives::barrier(const OnWait& waiting) const {
  constexpr int kLooks = 256;  // for each that is told of: the clock is read no more often
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(group_.get(), &request));
  const TimePoint begin = now();
  int done = 0;
  for (int looks = 1;; ++looks) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    if (looks % kLooks == 0) waiting(now() - begin);
    std::this_thread::yield();
  }
}

void OwnCollectives::run(CollectiveKind kind, const Exchange& exchange) const {
  MPI_Comm comm = group_.get();
  const MPI_Datatype type = mpi::type_of(exchange.type);
  const bool in_place = exchange.mine.data() == nullptr;
  const bool first = group_.rank() == 0;
  void* const result = exchange.result.data();
  const void* const mine = in_place ? MPI_IN_PLACE : exchange.mine.data();
  const int room = counted(exchange.result.size(), exchange.type);
  const int brought = in_place ? room : counted(exchange.mine.size(), exchange.type);
  const int members = group_.size();
  switch (kind) {
    case CollectiveKind::all_gather:
      return check(MPI_Allgather(mine, room / members, type, result, room / members, type, comm));
    case CollectiveKind::reduce_scatter:
      return check(MPI_Reduce_scatter_block(mine, result, brought / members, type, MPI_SUM, comm));
    case CollectiveKind::all_reduce:
      return check(MPI_Allreduce(mine, result, room, type, MPI_SUM, comm));
    case CollectiveKind::broadcast:
      if (!in_place && first) std::memcpy(result, mine, exchange.mine.size());
      return check(MPI_Bcast(result, room, type, 0, comm));
    case CollectiveKind::reduce:
      return check(in_place && !first ? MPI_Reduce(result, nullptr, brought, type, MPI_SUM, 0, comm)
                                      : MPI_Reduce(mine, result, brought, type, MPI_SUM, 0, comm));
    case CollectiveKind::gather:
      return check(
          first ? MPI_Gather(mine, room / members, type, result, room / members, type, 0, comm)
                : MPI_Gather(in_place ? result : mine, brought, type, nullptr, brought, type, 0,
                             comm));
    case CollectiveKind::scatter:
      return check(first ? MPI_Scatter(in_place ? result : mine, brought / members, type,
                                       in_place ? MPI_IN_PLACE : result, brought / members, type, 0,
                                       comm)
                         : MPI_Scatter(nullptr, room, type, result, room, type, 0, comm));
    case CollectiveKind::all_to_all:
      return check(MPI_Alltoall(mine, room / members, type, result, room / members, type, comm));
  }
}

GivesWay::GivesWay() { set_idle_look(IdleLook::give_way); }

GivesWay::~GivesWay() { set_idle_look(IdleLook::return_at_once); }

}  // namespace longhaul::comm
