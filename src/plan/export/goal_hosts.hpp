#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "plan/export/export.hpp"
#include "plan/plan.hpp"

namespace longhaul::plan {

/// Where the ranks of a plan are among the hosts of a GOAL file, with their processors and network
/// interfaces, as the simulator needs it.
///  - atlahs: a host is a datacenter. Its first processors are its ranks' devices, the next one is
///    for communication. Interface 0 takes receives; each channel that leaves the host, that is an
///    ordered pair of ranks, for messages or for rings of collectives, has an interface of its own.
///  - loggopsim: a host is a rank, with processor 0 and interface 0 alone.
class GoalHosts {
public:
  /// Throws Error where a datacenter has more devices or channels than 8 bits count.
  GoalHosts(const Plan& plan, GoalSimulator simulator);

  /// Ranks of each host, ascending.
  [[nodiscard]] const std::vector<std::vector<Rank>>& ranks() const { return ranks_; }
  [[nodiscard]] std::size_t of(Rank rank) const { return host_[index(rank)]; }
  [[nodiscard]] bool share_one(Rank a, Rank b) const { return of(a) == of(b); }
  [[nodiscard]] std::size_t device_of(Rank rank) const { return device_[index(rank)]; }
  [[nodiscard]] std::size_t communication_of(Rank rank) const { return communication_[of(rank)]; }
  [[nodiscard]] std::size_t interface_of_messages(Rank from, Rank to) const {
    return interface_of(from, to, false);
  }
  [[nodiscard]] std::size_t interface_of_ring(Rank from, Rank to) const {
    return interface_of(from, to, true);
  }

private:
  using Channel = std::tuple<Rank, Rank, bool>;
  void place_by_datacenter(const Plan& plan);
  void place_by_rank(const Plan& plan);
  void number_channels(const Plan& plan);
  [[nodiscard]] std::size_t interface_of(Rank from, Rank to, bool ring) const;

  std::vector<std::vector<Rank>> ranks_;    ///< index: host
  std::vector<std::size_t> host_;           ///< index: rank
  std::vector<std::size_t> device_;         ///< index: rank; a processor of its host
  std::vector<std::size_t> communication_;  ///< index: host; a processor
  std::map<Channel, std::size_t> interface_;
};

}  // namespace longhaul::plan
