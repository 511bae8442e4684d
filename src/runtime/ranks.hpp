#pragma once

#include <memory>
#include <optional>

#include "runtime/blocking_call.hpp"
#include "runtime/host/board.hpp"
#include "runtime/transport/mpi/communicator.hpp"
#include "runtime/transport/transport.hpp"
#include "runtime/watchdog.hpp"

namespace longhaul {

/// The ranks of this run, as one of them sees them: made once, behind mpi::Session.
class Ranks {
public:
  /// Collective over mpi::Communicator::world(). `ranks_per_host` as for Board. `as`: the rank that
  /// this process or thread plays; otherwise its number there.
  explicit Ranks(const WatchdogOptions& options, int ranks_per_host = 0,
                 std::optional<Rank> as = std::nullopt);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] Rank self() const { return board_.self(); }
  [[nodiscard]] bool is_first() const { return self() == Rank{0}; }
  [[nodiscard]] int count() const { return board_.ranks(); }
  [[nodiscard]] const mpi::Communicator& world() const { return world_; }
  [[nodiscard]] const Board& board() const { return board_; }
  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] Watchdog& watchdog() { return watchdog_; }
  /// Numbers the plans that these ranks run, from 0.
  [[nodiscard]] std::uint32_t next_run() { return runs_++; }

private:
  std::optional<BlockingCall> guard_;  ///< while the others are made
  mpi::Communicator world_;
  Board board_;
  std::unique_ptr<Transport> transport_;
  Watchdog watchdog_;
  std::uint32_t runs_ = 0;
};

}  // namespace longhaul
