#include "plan/parts/set_exchange.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::plan {
namespace {

std::map<DatacenterId, std::vector<std::int32_t>> by_site(const std::vector<DatacenterId>& sites) {
  std::map<DatacenterId, std::vector<std::int32_t>> members;
  for (std::size_t i = 0; i < sites.size(); ++i)
    members[sites[i]].push_back(static_cast<std::int32_t>(i));
  return members;
}

/// In hop h each member hands on the set that it got in hop h - 1; its own in hop 0.
SetExchangeSteps around_ring(std::int32_t members, Bytes size) {
  SetExchangeSteps steps;
  for (std::int32_t hop = 0; hop + 1 < members; ++hop)
    for (std::int32_t from = 0; from < members; ++from) {
      const std::int32_t before = (from + members - 1) % members;
      const std::int32_t brought_by = hop == 0 ? -1 : (hop - 1) * members + before;
      steps.messages.push_back({from, (from + 1) % members, hop, brought_by, false, size});
    }
  return steps;
}

SetExchangeSteps each_to_each(std::int32_t members, Bytes size) {
  SetExchangeSteps steps;
  for (std::int32_t from = 0; from < members; ++from)
    for (std::int32_t away = 1; away < members; ++away)
      steps.messages.push_back({from, (from + away) % members, 0, -1, false, size});
  return steps;
}

/// Hop 0 brings sets to the site's chooser, hop 1 its choice to those of other sites, the others
/// all choices to the members.
class ThroughSites {
public:
  ThroughSites(const std::vector<DatacenterId>& sites, int part, const SetSizes& sizes)
      : sites_{by_site(sites)}, part_{part}, sizes_{sizes} {}

  [[nodiscard]] SetExchangeSteps run() {
    for (const auto& [site, members] : sites_) gather(members);
    for (const auto& [site, members] : sites_) cross(site, chooser(members));
    for (const auto& [site, members] : sites_) spread(site, members);
    return std::move(steps_);
  }

private:
  [[nodiscard]] std::int32_t chooser(const std::vector<std::int32_t>& members) const {
    return members[to_size(part_) % members.size()];
  }
  std::int32_t add(const SetMessage& message) {
    steps_.messages.push_back(message);
    return static_cast<std::int32_t>(steps_.messages.size() - 1);
  }

  void gather(const std::vector<std::int32_t>& members) {
    const std::int32_t to = chooser(members);
    SiteChoice choice{to, {}};
    for (const std::int32_t from : members)
      if (from != to) choice.inputs.push_back(add({from, to, 0, -1, false, sizes_.of_member}));
    steps_.choices.push_back(std::move(choice));
  }

  void cross(DatacenterId site, std::int32_t from) {
    for (const auto& [other, members] : sites_)
      if (other != site)
        brought_[other].push_back(add({from, chooser(members), 1, -1, true, sizes_.of_site}));
  }

  void spread(DatacenterId site, const std::vector<std::int32_t>& members) {
    const std::int32_t from = chooser(members);
    for (const std::int32_t to : members) {
      if (to == from) continue;
      std::int32_t hop = 2;
      add({from, to, hop, -1, true, sizes_.of_site});
      for (const std::int32_t brought_by : brought_[site])
        add({from, to, ++hop, brought_by, false, sizes_.of_site});
    }
  }

  std::map<DatacenterId, std::vector<std::int32_t>> sites_;
  int part_;
  SetSizes sizes_;
  SetExchangeSteps steps_;
  std::map<DatacenterId, std::vector<std::int32_t>> brought_;  ///< choices of others, by site
};

}  // namespace

int count_sites(const std::vector<DatacenterId>& sites) {
  return static_cast<int>(by_site(sites).size());
}

SetExchangeSteps exchange_of(SetExchange exchange, const std::vector<DatacenterId>& sites, int part,
                             const SetSizes& sizes) {
  const auto members = static_cast<std::int32_t>(sites.size());
  if (members < 2) return {};
  switch (exchange) {
    case SetExchange::ring: return around_ring(members, sizes.of_member);
    case SetExchange::direct: return each_to_each(members, sizes.of_member);
    case SetExchange::sites: return ThroughSites{sites, part, sizes}.run();
  }
  return {};
}

SetExchangeSteps exchanges_of(SetExchange exchange, const std::vector<DatacenterId>& sites,
                              int part, std::span<const SetSizes> sizes) {
  SetExchangeSteps all;
  std::int32_t hops = 0;
  for (std::int32_t round = 0; round < std::ssize(sizes); ++round) {
    SetExchangeSteps steps = exchange_of(exchange, sites, part, sizes[to_size(round)]);
    const auto before = static_cast<std::int32_t>(all.messages.size());
    const std::int32_t first_hop = hops;
    for (SetMessage& message : steps.messages) {
      message.round = round;
      message.hop += first_hop;
      if (message.brought_by >= 0) message.brought_by += before;
      hops = std::max(hops, message.hop + 1);
      all.messages.push_back(message);
    }
    for (SiteChoice& choice : steps.choices) {
      choice.round = round;
      for (std::int32_t& input : choice.inputs) input += before;
      all.choices.push_back(std::move(choice));
    }
  }
  return all;
}

SetExchangeSteps exchanges_of_nodes(SetExchange exchange, const std::vector<DatacenterId>& sites,
                                    const std::vector<std::int32_t>& leaders, int part,
                                    std::span<const SetSizes> sizes, Bytes dense) {
  if (leaders.empty()) return exchanges_of(exchange, sites, part, sizes);
  LONGHAUL_ASSERT(leaders.size() == sites.size(), "{} and {}", leaders.size(), sites.size());
  std::vector<std::int32_t> members;  // that exchange
  std::vector<DatacenterId> site_of;
  for (std::size_t m = 0; m < leaders.size(); ++m) {
    if (to_size(leaders[m]) != m) continue;
    members.push_back(leaders[m]);
    site_of.push_back(sites[m]);
  }
  SetExchangeSteps steps = exchanges_of(exchange, site_of, part, sizes);
  for (SetMessage& message : steps.messages) {
    message.from = members[to_size(message.from)];
    message.to = members[to_size(message.to)];
  }
  for (SiteChoice& choice : steps.choices) choice.at = members[to_size(choice.at)];
  for (std::size_t m = 0; m < leaders.size(); ++m) {
    const auto member = static_cast<std::int32_t>(m);
    if (leaders[m] == member) continue;
    steps.messages.push_back({member, leaders[m], 0, -1, false, dense, 0, NodeLeg::gradient});
    steps.messages.push_back({leaders[m], member, 0, -1, false, dense, 0, NodeLeg::weights});
  }
  steps.leaders = leaders;
  return steps;
}

int count_leaders(const std::vector<std::int32_t>& leaders, std::size_t members) {
  if (leaders.empty()) return static_cast<int>(members);
  int count = 0;
  for (std::size_t m = 0; m < leaders.size(); ++m)
    if (to_size(leaders[m]) == m) ++count;
  return count;
}

}  // namespace longhaul::plan
