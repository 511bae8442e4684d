#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/units.hpp"
#include "comm/group/host_ranks.hpp"
#include "host/binding.hpp"

namespace longhaul::host {

/// The host that a rank is on.
struct Machine {
  std::string host;
  std::string kernel;
  std::string processor;
  std::string topology;  ///< "2 packages, 2 NUMA nodes, 64 cores, 128 threads"
  int cores = 0;
  Bytes memory;
  std::string hwloc_version;
};
[[nodiscard]] Machine describe_machine();
[[nodiscard]] std::string host_name();

/// Collective over the ranks of this host: gives each its binding (bind_ranks), and binds each to
/// its cores where there are enough. Ranks that a launcher has bound apart stay where they are.
[[nodiscard]] RankBinding bind_self(const comm::HostRanks& host_ranks);

/// How busy the machine is, and what that did to this rank (its process, or its thread where ranks
/// are threads), up to now.
struct Load {
  std::array<double, 3> average{};  ///< of 1, 5 and 15 minutes
  std::int64_t steal_ticks = 0;     ///< taken by other virtual machines
  std::int64_t all_ticks = 0;
  std::int64_t involuntary_switches = 0;
  std::int64_t voluntary_switches = 0;
  Duration processor_time{};
};
[[nodiscard]] Load load_now();
/// Of each average the larger one.
[[nodiscard]] std::array<double, 3> largest_of(const std::array<double, 3>& a,
                                               const std::array<double, 3>& b);

}  // namespace longhaul::host
