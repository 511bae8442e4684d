#include "comm/mpi/mpi_transport.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "base/index.hpp"
#include "comm/blocking_call.hpp"
#include "comm/group/session.hpp"

namespace longhaul::comm {
namespace {

int largest_tag(MPI_Comm comm) {
  void* value = nullptr;
  int found = 0;
  check(MPI_Comm_get_attr(comm, MPI_TAG_UB, &value, &found));
  return found != 0 ? *static_cast<int*>(value) : 32767;  // the least that MPI promises
}

/// Elements of a collective: MPI's own sums take no types of ours.
int int_count(std::size_t count) {
  if (count > std::numeric_limits<int>::max())
    throw Error{fmt::format("a collective of {} numbers is more than MPI can count (2^31 - 1). "
                            "Spread the model over more stages.",
                            count),
                ExitCode::run_failed};
  return static_cast<int>(count);
}

}  // namespace

MpiTransport::MpiTransport(const Communicator& world, const HostRanks& host_ranks,
                           std::size_t largest)
    : comm_{world.duplicate()},
      host_ranks_{host_ranks},
      tags_{largest_tag(comm_.get()) - 1},
      largest_{largest} {}

MpiTransport::~MpiTransport() {
  for (MPI_Request& request : requests_) {
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
}

RequestId MpiTransport::send(Rank to, int tag, std::span<const std::byte> data) {
  MPI_Request request = MPI_REQUEST_NULL;
  const mpi::ByteCount bytes{data.size(), largest_};
  check(MPI_Isend(data.data(), bytes.count(), bytes.type(), static_cast<int>(to), tag, comm_.get(),
                  &request));
  return add(request, Kind::send, to);
}

RequestId MpiTransport::receive(Rank from, int tag, std::span<std::byte> buffer) {
  MPI_Request request = MPI_REQUEST_NULL;
  const mpi::ByteCount bytes{buffer.size(), largest_};
  check(MPI_Irecv(buffer.data(), bytes.count(), bytes.type(), static_cast<int>(from), tag,
                  comm_.get(), &request));
  posted_ = true;
  return add(request, Kind::receive, from);
}

RequestId MpiTransport::collective(CollectiveKind kind, std::span<const Rank> members,
                                   const Exchange& of_caller) {
  std::shared_ptr<mpi::Widened> widened;
  if (of_caller.type == NumberType::bf16 && facts_of(kind).merging == Merging::sum)
    widened = std::make_shared<mpi::Widened>(of_caller);
  const Exchange exchange = widened ? widened->exchange() : of_caller;
  MPI_Comm comm = group(members).get();
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Datatype type = mpi::type_of(exchange.type);
  const std::size_t width = bytes_of(exchange.type);
  const void* mine = exchange.mine.data();
  void* result = exchange.result.data();
  const int count = int_count(exchange.mine.size() / width);
  switch (kind) {
    case CollectiveKind::all_gather:
      check(MPI_Iallgather(mine, count, type, result, count, type, comm, &request));
      break;
    case CollectiveKind::reduce_scatter:
      check(MPI_Ireduce_scatter_block(mine, result, int_count(exchange.result.size() / width), type,
                                      MPI_SUM, comm, &request));
      break;
    case CollectiveKind::all_reduce:
      check(MPI_Iallreduce(mine, result, count, type, MPI_SUM, comm, &request));
      break;
    case CollectiveKind::broadcast:
      if (count > 0) std::memcpy(result, mine, exchange.mine.size());
      check(MPI_Ibcast(result, int_count(exchange.result.size() / width), type, 0, comm, &request));
      break;
    case CollectiveKind::reduce:
      check(MPI_Ireduce(mine, result, count, type, MPI_SUM, 0, comm, &request));
      break;
    case CollectiveKind::gather:
      check(MPI_Igather(mine, count, type, result, count, type, 0, comm, &request));
      break;
    case CollectiveKind::scatter: {
      const int share = int_count(exchange.result.size() / width);
      check(MPI_Iscatter(mine, share, type, result, share, type, 0, comm, &request));
      break;
    }
    case CollectiveKind::all_to_all: {
      const int share = count / static_cast<int>(members.size());
      check(MPI_Ialltoall(mine, share, type, result, share, type, comm, &request));
      break;
    }
  }
  return add(request, Kind::collective, self(), std::move(widened));
}

void MpiTransport::prepare_group(std::span<const Rank> members) { group(members); }

const Communicator& MpiTransport::group(std::span<const Rank> members) {
  std::vector<int> key;
  for (const Rank member : members) key.push_back(static_cast<int>(member));
  const auto found = groups_.find(key);
  if (found != groups_.end()) return found->second;
  const BlockingCall guard{"the members of a group to meet", std::chrono::seconds{40}};
  return groups_.emplace(key, comm_.subgroup(key, key.front())).first->second;
}

RequestId MpiTransport::add(MPI_Request request, Kind kind, Rank peer,
                            std::shared_ptr<mpi::Widened> sum) {
  const RequestId id{next_id_++};
  requests_.push_back(request);
  pending_.push_back({id, kind, peer, std::move(sum)});
  count(pending_.back(), 1);
  return id;
}

void MpiTransport::count(const Pending& pending, int change) {
  if (pending.kind == Kind::send) {
    sends_ += change;
    host_ranks_.mine().unfinished_sends.store(static_cast<std::uint32_t>(sends_));
  }
  if (pending.kind == Kind::collective) collectives_ += change;
  if (pending.kind == Kind::receive && !host_ranks_.is_local(pending.peer))
    remote_receives_ += change;
}

void MpiTransport::advance(std::vector<Completion>& done) {
  posted_ = false;
  if (requests_.empty()) return;
  // Open MPI looks at the requests first and moves the messages afterwards: what one call brings in
  // is seen by the next.
  for (int idle = 0; idle < 2 && !requests_.empty();) idle = test_once(done) ? 0 : idle + 1;
}

bool MpiTransport::test_once(std::vector<Completion>& done) {
  completed_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count_done = 0;
  check(MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count_done,
                     completed_.data(), statuses_.data()));
  if (count_done == 0 || count_done == MPI_UNDEFINED) return false;
  completed_.resize(to_size(count_done));
  for (std::size_t i = 0; i < completed_.size(); ++i) {
    const Pending& pending = pending_[at(completed_[i])];
    const bool received = pending.kind == Kind::receive;
    if (pending.sum) pending.sum->narrow();
    done.push_back({pending.id, received ? mpi::bytes_of(statuses_[i]) : 0});
    count(pending, -1);
    if (pending.kind == Kind::receive) host_ranks_.ring_doorbell_if_sending(pending.peer);
  }
  std::ranges::sort(completed_, std::greater{});
  for (const int at : completed_) {
    requests_.erase(requests_.begin() + at);
    pending_.erase(pending_.begin() + at);
  }
  return true;
}

bool MpiTransport::wants_polling() const {
  return sends_ > 0 || collectives_ > 0 || remote_receives_ > 0;
}

std::int64_t MpiTransport::unclaimed() {
  std::int64_t count = 0;
  for (;;) {
    int found = 0;
    MPI_Status status;
    check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_.get(), &found, &status));
    if (found == 0) return count;
    std::vector<std::byte> buffer(mpi::bytes_of(status));
    const mpi::ByteCount bytes{buffer.size(), largest_};
    check(MPI_Recv(buffer.data(), bytes.count(), bytes.type(), status.MPI_SOURCE, status.MPI_TAG,
                   comm_.get(), MPI_STATUS_IGNORE));
    ++count;
  }
}

}  // namespace longhaul::comm
