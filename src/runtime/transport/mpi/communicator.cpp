#include "runtime/transport/mpi/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "runtime/transport/mpi/check.hpp"

namespace longhaul::mpi {

Communicator::Communicator(MPI_Comm comm) : comm_{comm} {
  check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
}

Communicator::Communicator(Communicator&& other) noexcept
    : comm_{std::exchange(other.comm_, MPI_COMM_NULL)}, on_wait_{std::move(other.on_wait_)} {}

Communicator& Communicator::operator=(Communicator&& other) noexcept {
  std::swap(comm_, other.comm_);
  std::swap(on_wait_, other.on_wait_);
  return *this;
}

Communicator::~Communicator() {
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

Communicator Communicator::duplicate(MPI_Comm parent) {
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(parent, &comm));
  return Communicator{comm};
}

Communicator Communicator::split(int color, int key) const {
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_split(comm_, color, key, &comm));
  return Communicator{comm};
}

Communicator Communicator::split_by_host() const {
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &comm));
  return Communicator{comm};
}

Communicator Communicator::subgroup(std::span<const int> members, int tag) const {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_group(comm_, &all));
  check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &group));
  check(MPI_Comm_create_group(comm_, group, tag, &comm));
  check(MPI_Group_free(&group));
  check(MPI_Group_free(&all));
  return Communicator{comm};
}

int Communicator::rank() const {
  int rank = 0;
  check(MPI_Comm_rank(comm_, &rank));
  return rank;
}

int Communicator::size() const {
  int size = 0;
  check(MPI_Comm_size(comm_, &size));
  return size;
}

void Communicator::wait(MPI_Request request) const {
  using namespace std::chrono_literals;
  auto pause = 20us;
  const auto begin = std::chrono::steady_clock::now();
  for (int done = 0;;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    if (on_wait_) on_wait_(std::chrono::steady_clock::now() - begin);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, 1000us);
  }
}

void Communicator::barrier() const {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(comm_, &request));
  wait(request);
}

std::string Communicator::broadcast(std::string text, int root) const {
  auto size = static_cast<std::int64_t>(text.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibcast(&size, 1, MPI_INT64_T, root, comm_, &request));
  wait(request);
  text.resize(static_cast<std::size_t>(size));
  check(MPI_Ibcast(text.data(), static_cast<int>(size), MPI_CHAR, root, comm_, &request));
  wait(request);
  return text;
}

std::vector<std::byte> Communicator::gather(std::span<const std::byte> mine,
                                            std::vector<int>& counts, int root) const {
  const int me = rank();
  counts.assign(me == root ? static_cast<std::size_t>(size()) : 0, 0);
  const int count = static_cast<int>(mine.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Igather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, root, comm_, &request));
  wait(request);
  std::vector<int> begins(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  std::vector<std::byte> all(
      static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), 0)));
  check(MPI_Igatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), begins.data(),
                     MPI_BYTE, root, comm_, &request));
  wait(request);
  return all;
}

std::vector<std::int64_t> Communicator::all_gather(std::int64_t mine) const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(size()));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, comm_, &request));
  wait(request);
  return all;
}

std::int64_t Communicator::reduce(std::int64_t mine, MPI_Op operation) const {
  std::int64_t result = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(&mine, &result, 1, MPI_INT64_T, operation, comm_, &request));
  wait(request);
  return result;
}

std::int64_t Communicator::sum(std::int64_t mine) const { return reduce(mine, MPI_SUM); }
std::int64_t Communicator::maximum(std::int64_t mine) const { return reduce(mine, MPI_MAX); }
std::int64_t Communicator::minimum(std::int64_t mine) const { return reduce(mine, MPI_MIN); }

}  // namespace longhaul::mpi
