#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "planner/collectives/collective_times.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::planner {
namespace {

using plan::Collective;
using schedule::LinkResource;
using schedule::NetworkRoute;
using schedule::RouteSegment;

/// Members on one side of a cut.
struct CutSide {
  std::string name;          ///< "datacenter west"
  std::vector<bool> inside;  ///< by member
};

struct Crossing {
  Bytes out, in;
};

/// The bytes of the kind that cross the cut, whatever the algorithm.
Crossing bytes_across(const Collective& collective, const std::vector<bool>& inside) {
  const auto members = static_cast<std::int64_t>(inside.size());
  const Bytes all = collective.size;
  Bytes mine;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < members; ++i) {
    if (!inside[at(i)]) continue;
    mine += plan::shard_size(all, members, i);
    ++count;
  }
  const bool has_first = inside.front();
  switch (collective.kind) {
    case CollectiveKind::all_gather: return {mine, all - mine};
    case CollectiveKind::reduce_scatter: return {all - mine, mine};
    case CollectiveKind::all_reduce: return {all, all};
    case CollectiveKind::all_to_all: return {(all - mine) * count, mine * (members - count)};
    case CollectiveKind::broadcast: return has_first ? Crossing{all, {}} : Crossing{{}, all};
    case CollectiveKind::reduce: return has_first ? Crossing{{}, all} : Crossing{all, {}};
    case CollectiveKind::gather: return has_first ? Crossing{{}, all - mine} : Crossing{mine, {}};
    case CollectiveKind::scatter: return has_first ? Crossing{all - mine, {}} : Crossing{{}, mine};
  }
  return {};
}

/// Sum of the rates of resources that messages across a cut hold; unlimited where one holds none.
class Capacity {
public:
  void add(const NetworkRoute& route, std::initializer_list<ResourceKind> kinds) {
    bool held = false;
    for (const RouteSegment& segment : route.segments) {
      if (std::ranges::find(kinds, segment.resource.kind) == kinds.end()) continue;
      if (segment.rate.is_unlimited()) continue;
      // Where several messages travel at a time, each at the route's rate.
      const double together = segment.capacity > 1 ? segment.capacity * route.rate.bits_per_second()
                                                   : segment.rate.bits_per_second();
      rates_[segment.resource] =
          std::max(rates_[segment.resource], std::min(together, segment.rate.bits_per_second()));
      held = true;
    }
    unlimited_ = unlimited_ || !held;
  }
  [[nodiscard]] double rate() const {
    if (unlimited_) return Bandwidth::unlimited().bits_per_second();
    double sum = 0;
    for (const auto& [resource, rate] : rates_) sum += rate;
    return sum;
  }

private:
  std::map<LinkResource, double> rates_;
  bool unlimited_ = false;
};

/// One way across a cut: how fast at most, and after what latency at least.
class OneWay {
public:
  void add(const NetworkRoute& route, std::pair<int, int> datacenters) {
    senders_.add(route, {ResourceKind::port_out, ResourceKind::internal_out, ResourceKind::egress});
    receivers_.add(route,
                   {ResourceKind::port_in, ResourceKind::internal_in, ResourceKind::ingress});
    PairCapacity& pair = pairs_[datacenters];
    pair.links.add(route, {ResourceKind::link, ResourceKind::shared_link});
    pair.aggregates.add(route, {ResourceKind::aggregate});
    pair.senders.add(route,
                     {ResourceKind::port_out, ResourceKind::internal_out, ResourceKind::egress});
    pair.receivers.add(route,
                       {ResourceKind::port_in, ResourceKind::internal_in, ResourceKind::ingress});
    latency_ = latency_ ? std::min(*latency_, route.latency) : route.latency;
  }
  [[nodiscard]] Bandwidth rate() const {
    double of_pairs = 0;
    for (const auto& [datacenters, pair] : pairs_)
      of_pairs += std::min(
          {pair.links.rate(), pair.aggregates.rate(), pair.senders.rate(), pair.receivers.rate()});
    return Bandwidth{std::min({of_pairs, senders_.rate(), receivers_.rate()})};
  }
  /// Rounded down: a bound may be too low, never too high.
  [[nodiscard]] Duration time(Bytes size) const {
    const double transfer = static_cast<double>(size.count()) * 8e9 / rate().bits_per_second();
    return Duration{static_cast<std::int64_t>(transfer)} + *latency_;
  }

private:
  struct PairCapacity {
    Capacity links, aggregates, senders, receivers;
  };
  Capacity senders_, receivers_;
  std::map<std::pair<int, int>, PairCapacity> pairs_;  ///< by datacenters
  std::optional<Duration> latency_;
};

class CollectiveCuts {
public:
  CollectiveCuts(const Collective& collective, const Scenario& scenario)
      : collective_{collective}, scenario_{scenario}, routes_{scenario} {}

  CollectiveBound bound() {
    const auto count = static_cast<int>(collective_.members.size());
    for (int i = 0; i < count; ++i) {
      std::vector<bool> inside(to_size(count), false);
      inside[at(i)] = true;
      consider({fmt::format("rank {}", index(collective_.members[at(i)])), std::move(inside)});
    }
    consider_nodes();
    consider_datacenters();
    return best_;
  }

private:
  /// Members that lie in one node with the first of them.
  void consider_nodes() {
    std::vector<bool> seen(collective_.members.size(), false);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i]) continue;
      std::vector<bool> inside(seen.size(), false);
      std::size_t size = 0;
      for (std::size_t j = i; j < seen.size(); ++j) {
        const bool same =
            routes_.level(collective_.members[i], collective_.members[j]) == NetworkLevel::node;
        if (!same && i != j) continue;
        inside[j] = seen[j] = true;
        ++size;
      }
      if (size > 1)
        consider({fmt::format("the node of rank {}", index(collective_.members[i])), inside});
    }
  }

  /// Each set of datacenters; where there are many, each one.
  void consider_datacenters() {
    constexpr std::size_t kMostInSets = 8;
    std::vector<DatacenterId> all;
    for (const Rank member : collective_.members)
      if (std::ranges::find(all, scenario_.datacenter_of(member)) == all.end())
        all.push_back(scenario_.datacenter_of(member));
    if (all.size() < 2) return;
    const std::size_t sets = std::size_t{1} << std::min(all.size(), kMostInSets);
    const bool each_alone = all.size() > kMostInSets;
    for (std::size_t set = 0; set < (each_alone ? all.size() : sets); ++set) {
      std::vector<std::string> names;
      std::vector<bool> inside(collective_.members.size(), false);
      for (std::size_t d = 0; d < all.size(); ++d) {
        if (each_alone ? set != d : (set >> d & 1) == 0) continue;
        names.push_back(scenario_.datacenters[index(all[d])].name);
        for (std::size_t i = 0; i < inside.size(); ++i)
          if (scenario_.datacenter_of(collective_.members[i]) == all[d]) inside[i] = true;
      }
      if (names.empty() || names.size() == all.size()) continue;
      consider({fmt::format("{} {}", names.size() == 1 ? "datacenter" : "datacenters",
                            fmt::join(names, ", ")),
                std::move(inside)});
    }
  }

  void consider(const CutSide& side) {
    OneWay out;
    OneWay in;
    const auto& members = collective_.members;
    bool crosses = false;
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t j = 0; j < members.size(); ++j) {
        if (side.inside[i] == side.inside[j]) continue;
        const std::pair datacenters{number(scenario_.datacenter_of(members[i])),
                                    number(scenario_.datacenter_of(members[j]))};
        (side.inside[i] ? out : in).add(routes_.between(members[i], members[j]), datacenters);
        crosses = true;
      }
    }
    if (!crosses) return;
    const Crossing bytes = bytes_across(collective_, side.inside);
    raise(out, bytes.out, "out of", side.name);
    raise(in, bytes.in, "into", side.name);
  }

  static int number(DatacenterId datacenter) { return static_cast<int>(index(datacenter)); }

  void raise(const OneWay& way, Bytes size, const char* direction, const std::string& name) {
    if (size == Bytes{}) return;
    const Duration time = way.time(size);
    if (time <= best_.lower_bound) return;
    best_.lower_bound = time;
    best_.reason =
        fmt::format("{} {} {} at {}", to_text(size), direction, name, to_text(way.rate()));
  }

  const Collective& collective_;
  const Scenario& scenario_;
  schedule::NetworkRoutes routes_;
  CollectiveBound best_;
};

}  // namespace

CollectiveBound bound_of_collective(const Collective& collective, const Scenario& scenario) {
  return CollectiveCuts{collective, scenario}.bound();
}

}  // namespace longhaul::planner
