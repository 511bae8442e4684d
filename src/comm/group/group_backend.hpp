#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

namespace longhaul::comm {

/// Told how long a blocking operation has waited; may throw or end the run. Empty: no one is told.
using OnWait = std::function<void(std::chrono::nanoseconds)>;
enum class Reduction { sum, maximum, minimum };

/// A group of ranks as one of them sees it, of which a Communicator is made: of processes, over
/// MPI, or of threads of this process. The calls mean what they mean there; all but rank(), size(),
/// and comm() are collective.
class GroupBackend {
public:
  GroupBackend() = default;
  virtual ~GroupBackend() = default;
  GroupBackend(const GroupBackend&) = delete;
  GroupBackend& operator=(const GroupBackend&) = delete;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// MPI_COMM_NULL where the ranks are threads.
  [[nodiscard]] virtual MPI_Comm comm() const = 0;

  using Handle = std::unique_ptr<GroupBackend>;
  [[nodiscard]] virtual Handle duplicate(const OnWait& on_wait) = 0;
  [[nodiscard]] virtual Handle split(int color, int key, const OnWait& on_wait) = 0;
  [[nodiscard]] virtual Handle split_by_host(const OnWait& on_wait) = 0;
  [[nodiscard]] virtual Handle subgroup(std::span<const int> members, int tag) = 0;

  virtual void barrier(const OnWait& on_wait) = 0;
  [[nodiscard]] virtual std::string broadcast(std::string text, int root,
                                              const OnWait& on_wait) = 0;
  [[nodiscard]] virtual std::vector<std::byte> gather(std::span<const std::byte> mine,
                                                      std::vector<int>& counts, int root,
                                                      const OnWait& on_wait) = 0;
  [[nodiscard]] virtual std::vector<std::int64_t> all_gather(std::int64_t mine,
                                                             const OnWait& on_wait) = 0;
  [[nodiscard]] virtual std::int64_t reduce(std::int64_t mine, Reduction how,
                                            const OnWait& on_wait) = 0;
  virtual void send(std::int64_t word, int to) = 0;
  [[nodiscard]] virtual std::int64_t receive(int from) = 0;
  [[nodiscard]] virtual std::shared_ptr<void> share(std::shared_ptr<void> of_first,
                                                    const OnWait& on_wait) = 0;
};

/// Collective over `parent`. Never adopts MPI_COMM_WORLD itself, so freeing is always legal.
[[nodiscard]] GroupBackend::Handle make_mpi_backend(MPI_Comm parent);

}  // namespace longhaul::comm
