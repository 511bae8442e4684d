#pragma once

#include <memory>
#include <span>

#include "comm/group/communicator.hpp"
#include "comm/transport.hpp"

namespace longhaul::comm {

/// MPI's own blocking collectives over a group of processes: what others are held against.
class OwnCollectives {
public:
  /// Collective over `members` (ascending; this rank is one) alone. Precondition: ranks are
  /// processes (Communicator::is_of_threads()).
  OwnCollectives(const Communicator& world, std::span<const Rank> members);

  /// Ranks leave it closer together than Communicator::barrier(), which sleeps: this one looks all
  /// the time, and tells `waiting` now and then how long it has.
  void barrier(const OnWait& waiting) const;
  /// `exchange` as for Transport::collective(). Without `mine` it works in place: the result's
  /// memory has what the member brings, a share of a gather at the member's own place, and as much
  /// room as it brings.
  void run(CollectiveKind kind, const Exchange& exchange) const;

private:
  Communicator group_;
};

/// While it lives, ranks that wait inside MPI give their core to another rank, as they do in
/// programs that MPI alone makes wait.
class GivesWay {
public:
  GivesWay();
  ~GivesWay();
  GivesWay(const GivesWay&) = delete;
  GivesWay& operator=(const GivesWay&) = delete;
};

}  // namespace longhaul::comm
