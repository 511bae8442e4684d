#include "harness/session/rank_map.hpp"

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "harness/ranks/gather_texts.hpp"
#include "harness/ranks/main.hpp"
#include "host/machine.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;
using nlohmann::ordered_json;

/// The hosts, in the order of their first processes; rank 0 gets them.
std::vector<AllocatedHost> hosts_of(const engine::Ranks& ranks) {
  const std::vector<std::string> names = gather_texts(ranks.world(), host::host_name());
  std::vector<AllocatedHost> hosts;
  std::vector<Rank> firsts;
  for (std::size_t process = 0; process < names.size(); ++process) {
    const Rank first = ranks.host_ranks().host_of(Rank{static_cast<std::int32_t>(process)});
    auto at = static_cast<std::size_t>(std::ranges::find(firsts, first) - firsts.begin());
    if (at == firsts.size()) {
      firsts.push_back(first);
      hosts.push_back({names[process], {}});
    }
    hosts[at].processes.push_back(static_cast<int>(process));
  }
  return hosts;
}

std::vector<RankGroup> groups_of(const PipelineInput& input, engine::Emulation emulation) {
  if (emulation == engine::Emulation::off) return {};  // nothing is leased
  std::vector<const Plan*> plans;
  for (const PlannedSchedule& planned : input.schedules) plans.push_back(&planned.plan);
  return ranks_that_lease_together(plans);
}

ordered_json entry_of(const Json& rank, Rank self, const Scenario& scenario) {
  const RankPlace place = scenario.place_of(self);
  ordered_json entry{
      {"rank", static_cast<int>(self)},
      {"host", rank["host"]},
      {"datacenter", scenario.datacenters[index(scenario.datacenter_of(self))].name},
      {"stage", number(place.stage)},
      {"replica", number(place.replica)},
      {"device",
       rank["gpu"].get<std::string>().empty() ? "CPU" : "GPU " + rank["gpu"].get<std::string>()},
      {"nic", rank["nic"]},
      {"cores", rank["cores"]},
      {"own_cores", rank["own_cores"]}};
  if (scenario.parallel.tensor > 1) entry["tensor"] = place.tensor;
  if (!scenario.services.empty()) entry["role"] = to_string(place.role);
  return entry;
}

std::string table_of(const ordered_json& map) {
  Table table{{{"rank"},
               {"host", Align::left},
               {"datacenter", Align::left},
               {"stage"},
               {"replica"},
               {"device", Align::left},
               {"network", Align::left},
               {"cores", Align::left}}};
  for (const ordered_json& entry : map) {
    const auto text = [&](const char* key) {
      return entry[key].is_string() ? entry[key].get<std::string>() : entry[key].dump();
    };
    table.add_row({text("rank"), text("host"), text("datacenter"), text("stage"), text("replica"),
                   text("device"), text("nic").empty() ? "-" : text("nic"),
                   text("cores") + (entry["own_cores"].get<bool>() ? "" : " (shared)")});
  }
  return table.text();
}

}  // namespace

void place_ranks(std::optional<engine::Ranks>& ranks, const PipelineInput& input,
                 const PipelineSettings& settings) {
  const std::vector<AllocatedHost> hosts = hosts_of(*ranks);
  const std::string text = on_rank0(ranks->world(), [&] {
    const PlacedRanks placement =
        place_ranks(input.scenario, hosts, groups_of(input, settings.engine.emulation));
    for (const std::string& warning : placement.warnings)
      fmt::print(stderr, "longhaul: {}\n", warning);
    Json places = Json::array();
    if (!placement.is_as_started())
      for (const Rank rank : placement.rank_of) places.push_back(static_cast<int>(rank));
    return places.dump();
  });
  const Json places = Json::parse(text);
  if (places.empty()) return;
  const int mine = places[index(ranks->self())].get<int>();
  comm::Communicator placed = ranks->world().split(0, mine);
  ranks.emplace(std::move(placed), engine::WatchdogOptions{settings.deadline});
}

void print_map(const engine::Ranks& ranks, const Scenario& scenario, bool as_json) {
  const host::RankBinding binding = host::bind_self(ranks.host_ranks());
  const Json mine = {{"host", host::host_name()},
                     {"gpu", binding.gpu},
                     {"nic", binding.nic},
                     {"cores", binding.cores},
                     {"own_cores", binding.has_cores}};
  const std::vector<std::string> all = gather_texts(ranks.world(), mine.dump());
  if (!ranks.is_first()) return;
  ordered_json map = ordered_json::array();
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    map.push_back(
        entry_of(Json::parse(all[rank]), Rank{static_cast<std::int32_t>(rank)}, scenario));
  fmt::print("{}", as_json ? map.dump(2) + "\n" : table_of(map));
  std::fflush(stdout);
}

}  // namespace longhaul::harness
