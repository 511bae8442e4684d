#pragma once

#include <memory>
#include <optional>

#include "comm/blocking_call.hpp"
#include "comm/group/communicator.hpp"
#include "comm/group/host_ranks.hpp"
#include "comm/piece_transport.hpp"
#include "comm/transport.hpp"
#include "engine/watchdog/watchdog.hpp"

namespace longhaul::engine {

/// The ranks of this run, as one of them sees them, made after mpi::Session: all that there are, or
/// those of a communicator.
class Ranks {
public:
  /// Collective over Communicator::world(). `ranks_per_host` as for HostRanks.
  explicit Ranks(const WatchdogOptions& options, int ranks_per_host = 0);
  /// Collective over `world`: its ranks, in their order there.
  Ranks(comm::Communicator world, const WatchdogOptions& options, int ranks_per_host = 0);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] Rank self() const { return host_ranks_.self(); }
  [[nodiscard]] bool is_first() const { return self() == Rank{0}; }
  [[nodiscard]] int count() const { return host_ranks_.ranks(); }
  [[nodiscard]] const comm::Communicator& world() const { return world_; }
  [[nodiscard]] const comm::HostRanks& host_ranks() const { return host_ranks_; }
  /// The transport that a plan runs over, on top of the host's: in the hosts' memory payloads go
  /// in pieces, unless another way was given for them.
  [[nodiscard]] comm::Transport& transport() { return payloads_ ? *payloads_ : pieces_; }
  [[nodiscard]] comm::Transport& host_transport() { return *transport_; }
  /// Payloads go over `transport`, which uses host_transport(), from now on. The same on all ranks.
  void carry_payloads_by(std::unique_ptr<comm::Transport> transport) {
    payloads_ = std::move(transport);
  }
  [[nodiscard]] Watchdog& watchdog() { return watchdog_; }
  /// Numbers the plans that these ranks run, from 0.
  [[nodiscard]] std::uint32_t next_run() { return runs_++; }

private:
  std::optional<comm::BlockingCall> guard_;  ///< while the others are made
  comm::Communicator world_;
  comm::HostRanks host_ranks_;
  std::unique_ptr<comm::Transport> transport_;
  comm::PieceTransport pieces_;                ///< over transport_
  std::unique_ptr<comm::Transport> payloads_;  ///< none: pieces_
  Watchdog watchdog_;
  std::uint32_t runs_ = 0;
};

}  // namespace longhaul::engine
