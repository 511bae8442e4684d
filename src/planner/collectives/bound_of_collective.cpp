#include <algorithm>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "planner/collectives/collective_times.hpp"
#include "planner/collectives/one_way.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::planner {
namespace {

using plan::Collective;

/// Members on one side of a cut.
struct CutSide {
  std::string name;          ///< "datacenter west"
  std::vector<bool> inside;  ///< by member
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
