#include "harness/placement/placement.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::harness {
namespace {

using RankList = std::vector<Rank>;
using HostOf = std::vector<std::size_t>;  ///< index: rank

/// Ranks of each datacenter, in the order of their lowest ranks.
std::vector<RankList> ranks_by_datacenter(const Scenario& scenario) {
  std::vector<RankList> all(scenario.datacenters.size());
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    all[index(scenario.datacenter_of(Rank{rank}))].push_back(Rank{rank});
  std::erase_if(all, [](const RankList& ranks) { return ranks.empty(); });
  std::ranges::sort(all, {}, [](const RankList& ranks) { return ranks.front(); });
  return all;
}

bool are_together(const std::vector<RankGroup>& groups, const HostOf& host_of) {
  return std::ranges::all_of(groups, [&](const RankGroup& group) {
    return std::ranges::all_of(
        group, [&](Rank rank) { return host_of[index(rank)] == host_of[index(group.front())]; });
  });
}

bool are_whole(const Scenario& scenario, const HostOf& host_of, std::size_t hosts) {
  std::vector<std::optional<DatacenterId>> datacenter(hosts);
  for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
    auto& here = datacenter[host_of[rank]];
    const DatacenterId of = scenario.placement[rank];
    if (here && *here != of) return false;
    here = of;
  }
  return true;
}

class Placer {
public:
  Placer(const Scenario& scenario, const std::vector<AllocatedHost>& hosts,
         const std::vector<RankGroup>& groups)
      : scenario_{scenario}, hosts_{hosts}, groups_{groups} {}

  std::optional<HostOf> as_started() const {
    HostOf host_of(to_size(scenario_.ranks()));
    for (std::size_t host = 0; host < hosts_.size(); ++host)
      for (const int process : hosts_[host].processes) host_of[at(process)] = host;
    return are_whole(scenario_, host_of, hosts_.size()) && are_together(groups_, host_of)
               ? std::optional{host_of}
               : std::nullopt;
  }

  /// Each datacenter takes hosts that it fills to the last slot: the earliest ones, or, where that
  /// leaves others none, the largest datacenter chooses first.
  std::optional<HostOf> on_whole_hosts() const {
    auto datacenters = ranks_by_datacenter(scenario_);
    if (auto found = on_whole_hosts(datacenters)) return found;
    std::ranges::stable_sort(datacenters, std::ranges::greater{}, &RankList::size);
    return on_whole_hosts(datacenters);
  }

  /// Datacenter by datacenter, hosts shared where they have to be.
  std::optional<HostOf> on_shared_hosts() const {
    RankList all;
    for (const RankList& ranks : ranks_by_datacenter(scenario_))
      all.insert(all.end(), ranks.begin(), ranks.end());
    std::vector<std::size_t> every(hosts_.size());
    std::iota(every.begin(), every.end(), std::size_t{0});
    HostOf host_of(all.size());
    if (!fill(all, every, host_of)) return std::nullopt;
    return host_of;
  }

private:
  std::size_t slots(std::size_t host) const { return hosts_[host].processes.size(); }

  std::optional<HostOf> on_whole_hosts(const std::vector<RankList>& datacenters) const {
    HostOf host_of(to_size(scenario_.ranks()));
    std::vector<std::size_t> left(hosts_.size());
    std::iota(left.begin(), left.end(), std::size_t{0});
    for (const RankList& ranks : datacenters) {
      const auto chosen = choose(left, ranks.size());
      if (!chosen || !fill(ranks, *chosen, host_of)) return std::nullopt;
      std::erase_if(left, [&](std::size_t host) {
        return std::ranges::find(*chosen, host) != chosen->end();
      });
    }
    return host_of;
  }

  /// The earliest hosts that have so many slots together.
  std::optional<std::vector<std::size_t>> choose(const std::vector<std::size_t>& from,
                                                 std::size_t needed) const {
    // reachable[i][n]: hosts from the i-th on can make up n slots.
    std::vector<std::vector<bool>> reachable(from.size() + 1, std::vector<bool>(needed + 1));
    reachable[from.size()][0] = true;
    for (std::size_t i = from.size(); i-- > 0;)
      for (std::size_t n = 0; n <= needed; ++n)
        reachable[i][n] =
            reachable[i + 1][n] || (slots(from[i]) <= n && reachable[i + 1][n - slots(from[i])]);
    if (!reachable[0][needed]) return std::nullopt;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; needed > 0; ++i) {
      if (slots(from[i]) > needed || !reachable[i + 1][needed - slots(from[i])]) continue;
      chosen.push_back(from[i]);
      needed -= slots(from[i]);
    }
    return chosen;
  }

  /// In order; where that would part a group, groups first, the largest in front.
  bool fill(const RankList& ranks, const std::vector<std::size_t>& hosts, HostOf& host_of) const {
    std::vector<RankList> units;
    for (const Rank rank : ranks) units.push_back({rank});
    if (first_fit(units, hosts, host_of) && are_kept(ranks, host_of)) return true;
    units.clear();
    RankList single = ranks;
    for (const RankGroup& group : groups_) {
      if (std::ranges::find(ranks, group.front()) == ranks.end()) continue;
      units.push_back(group);
      std::erase_if(single,
                    [&](Rank rank) { return std::ranges::find(group, rank) != group.end(); });
    }
    std::ranges::stable_sort(units, std::ranges::greater{}, &RankList::size);
    for (const Rank rank : single) units.push_back({rank});
    return first_fit(units, hosts, host_of) && are_kept(ranks, host_of);
  }

  /// True where each group with a rank among `ranks` is on one host, and wholly among `ranks`.
  bool are_kept(const RankList& ranks, const HostOf& host_of) const {
    const auto is_here = [&](Rank rank) { return std::ranges::find(ranks, rank) != ranks.end(); };
    return std::ranges::all_of(groups_, [&](const RankGroup& group) {
      return std::ranges::none_of(group, is_here) ||
             (std::ranges::all_of(group, is_here) && are_together({group}, host_of));
    });
  }

  bool first_fit(const std::vector<RankList>& units, const std::vector<std::size_t>& hosts,
                 HostOf& host_of) const {
    std::vector<std::size_t> free;
    for (const std::size_t host : hosts) free.push_back(slots(host));
    for (const RankList& unit : units) {
      const auto found =
          std::ranges::find_if(free, [&](std::size_t left) { return left >= unit.size(); });
      if (found == free.end()) return false;
      *found -= unit.size();
      const auto host = at(found - free.begin());
      for (const Rank rank : unit) host_of[index(rank)] = hosts[host];
    }
    return true;
  }

  const Scenario& scenario_;
  const std::vector<AllocatedHost>& hosts_;
  const std::vector<RankGroup>& groups_;
};

/// Processes of a host take its ranks in order.
std::vector<Rank> ranks_of_processes(const std::vector<AllocatedHost>& hosts,
                                     const HostOf& host_of) {
  std::vector<Rank> rank_of(host_of.size());
  std::vector<std::size_t> next(hosts.size());
  for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
    const std::size_t host = host_of[rank];
    const int process = hosts[host].processes[next[host]++];
    rank_of[at(process)] = Rank{static_cast<std::int32_t>(rank)};
  }
  return rank_of;
}

std::vector<std::string> warnings_of(const Scenario& scenario,
                                     const std::vector<AllocatedHost>& hosts, const HostOf& host_of,
                                     const std::string& fitting) {
  std::vector<std::string> shared;
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    std::vector<std::string> names;
    for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
      const std::string& name = scenario.datacenters[index(scenario.placement[rank])].name;
      if (host_of[rank] == host && std::ranges::find(names, name) == names.end())
        names.push_back(name);
    }
    if (names.size() > 1)
      shared.push_back(fmt::format("{} ({})", hosts[host].name, fmt::join(names, ", ")));
  }
  if (shared.empty()) return {};
  return {
      fmt::format("datacenters share hosts: {} (messages between them do not leave the host). "
                  "What would keep them apart: {}",
                  fmt::join(shared, "; "), fitting)};
}

std::string warning_of_leases(const std::vector<RankGroup>& groups, const HostOf& host_of,
                              const std::string& fitting) {
  std::size_t ranks = 0;
  for (const RankGroup& group : groups)
    if (!are_together({group}, host_of)) ranks += group.size();
  return fmt::format(
      "{} ranks share links or interfaces with ranks of other hosts (leases go by messages between "
      "hosts there, and cost round trips). What would keep them together: {}",
      ranks, fitting);
}

}  // namespace

bool PlacedRanks::is_as_started() const {
  for (std::size_t process = 0; process < rank_of.size(); ++process)
    if (index(rank_of[process]) != process) return false;
  return true;
}

PlacedRanks place_ranks(const Scenario& scenario, const std::vector<AllocatedHost>& hosts,
                        const std::vector<RankGroup>& groups) {
  PlacedRanks placement;
  std::size_t most = 0;
  for (const AllocatedHost& host : hosts) most = std::max(most, host.processes.size());
  const auto as_they_are = [&] {
    for (int rank = 0; rank < scenario.ranks(); ++rank) placement.rank_of.push_back(Rank{rank});
  };
  if (hosts.size() == 1) {
    as_they_are();
    return placement;
  }
  const std::string fitting = fitting_allocation(scenario, groups, static_cast<int>(most));
  for (const bool keeps_groups : {true, false}) {
    const std::vector<RankGroup> kept = keeps_groups ? groups : std::vector<RankGroup>{};
    const Placer placer{scenario, hosts, kept};
    std::optional<HostOf> host_of = placer.as_started();
    const bool as_started = host_of.has_value();
    if (!host_of) host_of = placer.on_whole_hosts();
    if (!host_of) host_of = placer.on_shared_hosts();
    if (!host_of) continue;
    if (as_started) {
      as_they_are();
    } else {
      placement.rank_of = ranks_of_processes(hosts, *host_of);
      placement.warnings = warnings_of(scenario, hosts, *host_of, fitting);
    }
    if (!keeps_groups) placement.warnings.push_back(warning_of_leases(groups, *host_of, fitting));
    break;
  }
  return placement;
}

}  // namespace longhaul::harness
