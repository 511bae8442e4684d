#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "base/index.hpp"
#include "comm/group/group_backend.hpp"
#include "comm/group/session.hpp"

namespace longhaul::comm {
namespace {

constexpr int kWordTag = 1;

MPI_Op operation_of(Reduction how) {
  switch (how) {
    case Reduction::sum: return MPI_SUM;
    case Reduction::maximum: return MPI_MAX;
    case Reduction::minimum: return MPI_MIN;
  }
  return MPI_OP_NULL;
}

void wait(MPI_Request request, const OnWait& on_wait) {
  using namespace std::chrono_literals;
  auto pause = 20us;
  const auto begin = std::chrono::steady_clock::now();
  for (int done = 0;;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done != 0) return;
    if (on_wait) on_wait(std::chrono::steady_clock::now() - begin);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, 1000us);
  }
}

class MpiBackend final : public GroupBackend {
public:
  explicit MpiBackend(MPI_Comm comm) : comm_{comm} {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
    check(MPI_Comm_rank(comm_, &rank_));
    check(MPI_Comm_size(comm_, &size_));
  }
  ~MpiBackend() override { MPI_Comm_free(&comm_); }

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] MPI_Comm comm() const override { return comm_; }

  [[nodiscard]] Handle duplicate(const OnWait& /*on_wait*/) override {
    return make_mpi_backend(comm_);
  }
  [[nodiscard]] Handle split(int color, int key, const OnWait& /*on_wait*/) override {
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_split(comm_, color, key, &comm));
    return std::make_unique<MpiBackend>(comm);
  }
  [[nodiscard]] Handle split_by_host(const OnWait& /*on_wait*/) override {
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &comm));
    return std::make_unique<MpiBackend>(comm);
  }
  [[nodiscard]] Handle subgroup(std::span<const int> members, int tag) override {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_group(comm_, &all));
    check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &group));
    check(MPI_Comm_create_group(comm_, group, tag, &comm));
    check(MPI_Group_free(&group));
    check(MPI_Group_free(&all));
    return std::make_unique<MpiBackend>(comm);
  }

  void barrier(const OnWait& on_wait) override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(comm_, &request));
    wait(request, on_wait);
  }
  [[nodiscard]] std::string broadcast(std::string text, int root, const OnWait& on_wait) override {
    auto size = static_cast<std::int64_t>(text.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibcast(&size, 1, MPI_INT64_T, root, comm_, &request));
    wait(request, on_wait);
    text.resize(to_size(size));
    check(MPI_Ibcast(text.data(), static_cast<int>(size), MPI_CHAR, root, comm_, &request));
    wait(request, on_wait);
    return text;
  }
  [[nodiscard]] std::vector<std::byte> gather(std::span<const std::byte> mine,
                                              std::vector<int>& counts, int root,
                                              const OnWait& on_wait) override {
    counts.assign(rank_ == root ? to_size(size_) : 0, 0);
    const int count = static_cast<int>(mine.size());
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Igather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, root, comm_, &request));
    wait(request, on_wait);
    std::vector<int> begins(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
    std::vector<std::byte> all(to_size(std::accumulate(counts.begin(), counts.end(), 0)));
    check(MPI_Igatherv(mine.data(), count, MPI_BYTE, all.data(), counts.data(), begins.data(),
                       MPI_BYTE, root, comm_, &request));
    wait(request, on_wait);
    return all;
  }
  [[nodiscard]] std::vector<std::int64_t> all_gather(std::int64_t mine,
                                                     const OnWait& on_wait) override {
    std::vector<std::int64_t> all(to_size(size_));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallgather(&mine, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, comm_, &request));
    wait(request, on_wait);
    return all;
  }
  [[nodiscard]] std::int64_t reduce(std::int64_t mine, Reduction how,
                                    const OnWait& on_wait) override {
    std::int64_t result = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Iallreduce(&mine, &result, 1, MPI_INT64_T, operation_of(how), comm_, &request));
    wait(request, on_wait);
    return result;
  }

  void send(std::int64_t word, int to) override {
    check(MPI_Send(&word, 1, MPI_INT64_T, to, kWordTag, comm_));
  }
  [[nodiscard]] std::int64_t receive(int from) override {
    std::int64_t word = 0;
    check(MPI_Recv(&word, 1, MPI_INT64_T, from, kWordTag, comm_, MPI_STATUS_IGNORE));
    return word;
  }
  [[nodiscard]] std::shared_ptr<void> share(std::shared_ptr<void> /*of_first*/,
                                            const OnWait& /*on_wait*/) override {
    return nullptr;
  }

private:
  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 0;
};

}  // namespace

GroupBackend::Handle make_mpi_backend(MPI_Comm parent) {
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(parent, &comm));
  return std::make_unique<MpiBackend>(comm);
}

}  // namespace longhaul::comm
