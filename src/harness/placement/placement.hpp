#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::harness {

/// A host of the run, with its processes as MPI numbered them.
struct AllocatedHost {
  std::string name;
  std::vector<int> processes;
};

/// Ranks that had better share a host, ascending; at least two.
using RankGroup = std::vector<Rank>;

/// Ranks whose sends hold a resource in common: while links are emulated its lease is kept in the
/// memory of one host, and others ask for it by messages. Groups do not overlap.
[[nodiscard]] std::vector<RankGroup> ranks_that_lease_together(
    const std::vector<const Plan*>& plans);

/// The rank that each process plays.
struct PlacedRanks {
  std::vector<Rank> rank_of;          ///< index: process
  std::vector<std::string> warnings;  ///< what is not as it should be, and does no harm
  [[nodiscard]] bool is_as_started() const;
};

/// Ranks of one datacenter on whole hosts, ranks (and so stages) in order, groups together. What
/// was started so is left as it is. On one host everything goes. Where whole hosts are not
/// possible, ranks fill hosts datacenter by datacenter; where no placement keeps groups together,
/// they are parted: both with a warning that names an allocation without it. As many processes as
/// ranks.
[[nodiscard]] PlacedRanks place_ranks(const Scenario& scenario,
                                      const std::vector<AllocatedHost>& hosts,
                                      const std::vector<RankGroup>& groups);

/// Nodes of a cluster that a scenario fits on: "--nodes=2 --ntasks-per-node=4" and how to start it
/// there; where datacenters differ, the slots of each node. No more than `most` ranks on a node,
/// where that is possible (0: as many as you like).
[[nodiscard]] std::string fitting_allocation(const Scenario& scenario,
                                             const std::vector<RankGroup>& groups, int most = 0);

}  // namespace longhaul::harness
