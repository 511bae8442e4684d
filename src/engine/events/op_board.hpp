#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "comm/group/host_ranks.hpp"
#include "plan/extras/op_source.hpp"

namespace longhaul::engine {

/// What a rank tells others of its ops.
struct OpNews {
  enum class Kind : std::uint32_t {
    ended,
    skipped,
    begun,  ///< an iteration, by its first op without a window
    quiet,  ///< nothing happens any more: sources that wait for an end have drawn their last
    over    ///< there is no more from this rank: to other hosts
  };
  std::int64_t at_ns = 0;  ///< stamp of the host's clock
  std::uint32_t op = 0;
  std::int32_t iteration = 0;
  Kind kind = Kind::ended;
  std::uint32_t reserved = 0;
  plan::DrawnWords words{};  ///< of an op that a source drew
};

/// Where the ranks of one host publish their news: each writes a ring in shared memory, and all
/// others read it, each at its own pace. No one waits: what finds no room is kept until there is.
class OpBoard {
public:
  /// Collective over the ranks of this host.
  explicit OpBoard(const comm::HostRanks& host_ranks);

  /// Hears what is published from now on: when no one publishes.
  void join();
  /// Hears no more, and is quiet: no one waits for it.
  void leave();
  void publish(const OpNews& news);
  /// Adds what the others of this host have published since the last call.
  void read(std::vector<OpNews>& to);
  /// Publishes what found no room, where there is some by now.
  void flush();
  [[nodiscard]] bool has_backlog() const { return !backlog_.empty(); }

  /// Can nothing move on this rank unless another one says something? Say no before looking for it.
  void set_quiet(bool quiet);
  /// A word between ranks of this host, which may be on its way.
  void count_sent();
  void count_received();
  /// Nothing can move on any rank of this host, and nothing is on its way between them.
  [[nodiscard]] bool all_quiet() const;

private:
  static constexpr std::uint64_t kRoom = 1024;
  static constexpr std::uint64_t kGone = ~std::uint64_t{0} / 2;
  struct Ring;
  struct Quiet;
  [[nodiscard]] Quiet& quiet(std::size_t rank) const;
  [[nodiscard]] std::optional<std::uint64_t> look_for_quiet() const;
  [[nodiscard]] Ring& ring(std::size_t rank) const;
  [[nodiscard]] std::atomic<std::uint64_t>& cursor(std::size_t writer, std::size_t reader) const;
  [[nodiscard]] bool put(const OpNews& news);

  std::size_t ranks_, self_ = 0;
  comm::SharedMemory memory_;
  std::deque<OpNews> backlog_;
  bool gone_ = true;
  std::uint64_t known_room_ = kRoom;  ///< may be written up to here without a look at the cursors
};

}  // namespace longhaul::engine
