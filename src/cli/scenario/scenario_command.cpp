#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "planner/sites/drawn_sites.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

constexpr int kMostDrawnSites = 1024;  // as of a scenario
constexpr int kMostDrawnGpus = 1 << 20;

/// A scenario of equal sites: each holds whole replicas of the model.
struct DrawnScenario {
  std::vector<std::string> regions;  ///< of the sites
  std::string table;                 ///< file of the regions; empty: the one that is built in
  std::string model = "llama3-405b";
  int tensor = 8, stages = 16, microbatches = 16;
  int replicas = 1;  ///< of each site
  Bandwidth uplink{10e12};
  double tour_ms = 0;  ///< round trips from site to site, around
  [[nodiscard]] int gpus_of_site() const { return tensor * stages * replicas; }
  [[nodiscard]] int sites() const { return static_cast<int>(regions.size()); }
};

int count_of(const char* option, const std::string& typed, int usual, int most) {
  return typed.empty() ? usual : whole_number(option, typed, 1, most);
}

DrawnScenario drawn(const ScenarioArguments& typed) {
  DrawnScenario made;
  if (typed.sites.empty()) fail("scenario: --sites is missing (how many). Give it: --sites 100.");
  const int sites = whole_number("--sites", typed.sites, 1, kMostDrawnSites);
  if (!typed.regions.empty()) made.table = std::filesystem::absolute(typed.regions).string();
  if (made.table.find_first_of("\"\\") != std::string::npos)
    fail("--regions: {} has a quote or a backslash (the scenario names the file). Rename it.",
         made.table);
  if (!typed.model.empty()) made.model = typed.model;
  made.tensor = count_of("--tensor", typed.tensor, made.tensor, 1024);
  made.stages = count_of("--stages", typed.stages, made.stages, kMostDrawnGpus);
  made.microbatches = count_of("--microbatches", typed.microbatches, made.microbatches, 1 << 20);
  if (!typed.uplink.empty()) made.uplink = parse_bandwidth(typed.uplink);
  const int gpus = count_of("--gpus", typed.gpus, 1'024'000, kMostDrawnGpus);
  const std::int64_t of_replica = std::int64_t{made.tensor} * made.stages;
  made.replicas = static_cast<int>(gpus / sites / of_replica);
  if (made.replicas < 1)
    fail(
        "--gpus {} is too few for {} sites (a replica takes {} x {} GPUs, and a site holds whole "
        "ones). Give {}.",
        gpus, sites, made.tensor, made.stages, of_replica * sites);
  const auto tour = typed.tour.empty() ? planner::SiteTour::shortest
                                       : choice<planner::SiteTour>("--tour", typed.tour);
  const scenario::RegionTable own = made.table.empty() ? scenario::RegionTable::built_in()
                                                       : scenario::RegionTable::load(made.table);
  const int seed = typed.seed.empty() ? 1 : whole_number("--seed", typed.seed, 0, 1 << 30);
  made.regions = planner::draw_sites(own, sites, static_cast<std::uint64_t>(seed), tour);
  made.tour_ms = planner::round_trips_ms(own, made.regions);
  return made;
}

/// What of it is assumed stands in the text.
std::string head_of(const DrawnScenario& made) {
  std::string text = fmt::format(
      "# {} equal sites of {} GPUs; their links are those between their regions (docs/sites.md).\n"
      "# Around the ring of sites: round trips of {:.0f} ms in all. Weights are divided inside a "
      "site,\n# and each part of the gradients is summed over all sites.\n"
      "[model]\npreset = \"{}\"\ntensor_parallel = 1\n\n[parallel]\ntensor = {}\nstages = "
      "{}\nreplicas = {}\n"
      "microbatches = {}\ngradient_sync = \"zero3\"\nshard = {}\n\n",
      made.sites(), made.gpus_of_site(), made.tour_ms, made.model, made.tensor, made.stages,
      made.replicas * made.sites(), made.microbatches, made.replicas);
  if (!made.table.empty()) text += fmt::format("[wan]\nregions = \"{}\"\n\n", made.table);
  const double share = made.uplink.bits_per_second() / made.gpus_of_site();
  text += fmt::format(
      "# A GPU's share of its site's uplink of {}, where the table has more.\n"
      "[[link]]\nbetween = \"all\"\nnode_cap = \"{:.0f}bps\"\n\n",
      to_text(made.uplink), share);
  return text;
}

std::string text_of(const DrawnScenario& made) {
  std::string text = head_of(made);
  for (int site = 0; site < made.sites(); ++site) {
    const std::string name = fmt::format("site-{}", site);
    const int first = site * made.replicas;
    text += fmt::format(
        "[[datacenter]]\nname = \"{0}\"\nregion = \"{1}\"\nreplicas = \"{2}-{3}\"\ngpus = {4}\n"
        "[[link]]\nbetween = [\"{0}\", \"{0}\"]\nlatency = \"10us\"\nbandwidth = \"400Gbps\"\n\n",
        name, made.regions[static_cast<std::size_t>(site)], first, first + made.replicas - 1,
        made.gpus_of_site());
  }
  return text;
}

std::string json_of(const Options& options, const DrawnScenario& made, const std::string& text) {
  nlohmann::ordered_json json = report::record_header(
      {.numbers = "simulated", .creator = "longhaul", .command_line = options.command_line});
  json["sites"] = made.sites();
  json["gpus"] = made.sites() * made.gpus_of_site();
  json["replicas"] = made.sites() * made.replicas;
  json["round_trips_ms"] = made.tour_ms;
  json["regions"] = made.regions;
  json["bytes"] = text.size();
  if (options.out.empty()) json["scenario"] = text;
  return report::json_text(json);
}

}  // namespace

void add_scenario_options(Arguments& command, ScenarioArguments& arguments) {
  command.option("--sites", arguments.sites, "how many sites, 1 to 1024");
  command.option("--gpus", arguments.gpus, "of all of them together (default: 1024000)");
  command.option("--regions", arguments.regions,
                 "table of regions (CSV, as of [wan] regions; default: the built-in one)");
  command.option("--model", arguments.model, "a preset (default: llama3-405b)");
  command.option("--tensor", arguments.tensor, "tensor ranks of a stage (default: 8)");
  command.option("--stages", arguments.stages, "of a replica (default: 16)");
  command.option("--microbatches", arguments.microbatches, "of a replica (default: 16)");
  command.option("--seed", arguments.seed, "of the draw of regions (default: 1)");
  command.option("--tour", arguments.tour,
                 "order of the sites: shortest (default), by round trips around them, or drawn");
  command.option("--uplink", arguments.uplink,
                 "rate of a site, which its GPUs share evenly (default: 10Tbps)");
}

Answer scenario_command(const Options& options) {
  if (!options.out.empty()) report::require_new_file(options.out);
  const DrawnScenario made = drawn(options.drawn);
  const std::string text = text_of(made);
  if (!options.out.empty())
    report::write_new_file(options.out, [&](std::ostream& stream) { stream << text; });
  if (options.json) return {json_of(options, made, text)};
  if (options.out.empty()) return {text};
  return {fmt::format("wrote {}: {} sites, {} GPUs, round trips of {:.0f} ms around them\n",
                      options.out, made.sites(), made.sites() * made.gpus_of_site(), made.tour_ms)};
}

}  // namespace longhaul::cli
