#include "base/error.hpp"
#include "base/index.hpp"
#include "planner/layouts/layout.hpp"
#include "planner/predict/predict.hpp"

namespace longhaul::planner {
namespace {

using profile::TrainingRow;

int global_batch_of(const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  return parallel.replicas * parallel.microbatches * scenario.model->microbatch_size;
}

/// Of a link: what the times of layouts leave out; empty: nothing.
std::string_view left_out_of(const Link& link) {
  if (link.sharing == Sharing::datacenter) return "sharing = \"datacenter\"";
  if (!link.aggregate.is_unlimited()) return "aggregate";
  if (link.jitter.any()) return "jitter";
  if (link.weather.trace != nullptr) return "trace";
  if (link.weather.loss.probability > 0) return "loss";
  return link.weather.outages.empty() ? std::string_view{} : "outage";
}

/// Refuses what would make a layout slower than the search says.
void require_modelled(const Scenario& scenario) {
  for (const Link& link : scenario.links)
    if (const std::string_view what = left_out_of(link); !what.empty())
      fail(
          "{}: the link from {} to {} has {} (a search of layouts takes latency and bandwidth "
          "alone). Leave it out, or simulate the plans that --emit writes with it.",
          scenario.name, scenario.datacenters[index(link.from)].name,
          scenario.datacenters[index(link.to)].name, what);
  if (!scenario.nodes.empty())
    fail("{}: there is a [[node]] (a search of layouts has the machine's nodes). Leave it out.",
         scenario.name);
  for (const Datacenter& datacenter : scenario.datacenters)
    if (datacenter.speed != 1)
      fail("{}: {} has a speed of {} (a search of layouts has one machine). Leave it out.",
           scenario.name, datacenter.name, datacenter.speed);
}

SiteLink link_between(const Scenario& scenario, int from, int to) {
  const Link* const link = scenario.link(DatacenterId{from}, DatacenterId{to});
  if (link == nullptr)
    fail("there is no link from {} to {} (layouts may lie in both). Add a [[link]].",
         scenario.datacenters[at(from)].name, scenario.datacenters[at(to)].name);
  return {link->latency, link->bandwidth};
}

/// Of many sites: the largest alone, and the first 2, 4, 8, ... and all by replicas.
void add_first_sites(LayoutProblem& problem) {
  const int count = static_cast<int>(problem.sites.size());
  const auto largest = std::ranges::max_element(
      problem.sites, {}, [](const LayoutSite& site) { return site.gpus.value_or(0); });
  problem.placings = {{{static_cast<int>(largest - problem.sites.begin())}, SiteSplit::stages}};
  for (int first = 2; first < 2 * count; first *= 2) {
    SiteChoice choice{{}, SiteSplit::replicas};
    for (int site = 0; site < std::min(first, count); ++site) choice.sites.push_back(site);
    problem.placings.push_back(std::move(choice));
  }
}

void add_sites(const Scenario& scenario, LayoutProblem& problem) {
  const int count = static_cast<int>(scenario.datacenters.size());
  problem.sites.clear();
  for (const Datacenter& datacenter : scenario.datacenters)
    problem.sites.push_back({datacenter.name, datacenter.gpus});
  problem.links.assign(at(count), std::vector<SiteLink>(at(count)));
  for (int from = 0; from < count; ++from)
    for (int to = 0; to < count; ++to)
      if (from != to) problem.links[at(from)][at(to)] = link_between(scenario, from, to);
  if (at(count) > kMostGroupedSites) return add_first_sites(problem);
  problem.placings.clear();
  for (unsigned group = 1; group < 1U << count; ++group) {
    SiteChoice choice;
    for (int site = 0; site < count; ++site)
      if ((group >> site & 1U) != 0) choice.sites.push_back(site);
    problem.placings.push_back(choice);
    choice.split = SiteSplit::replicas;
    if (choice.sites.size() > 1) problem.placings.push_back(choice);
  }
}

}  // namespace

std::string_view usual_machine(const Model& model) {
  constexpr double kFasterThanA100 = 400e12;
  return model.peak_flops > kFasterThanA100 ? "mpt-h100-80gb" : "selene";
}

TrainingRow row_of_model(const Model& model, std::string_view machine, int global_batch) {
  TrainingRow row;
  row.row = "search";
  row.machine = machine;
  row.model = model.name;
  row.global_batch = global_batch;
  row.sequence = model.sequence_length;
  row.hidden = model.hidden;
  row.intermediate = model.intermediate;
  row.heads = model.heads;
  row.kv_heads = model.kv_heads;
  const bool has_table = model.vocabulary > 0;
  row.layers = std::max(1, model.layers - (has_table ? 2 : 0));
  row.vocabulary = std::max(1, model.vocabulary);
  row.mlp = model.mlp;
  row.positions = model.positions;
  row.attention = model.attention;
  return row;
}

LayoutProblem layout_problem(const Scenario& scenario, const profile::Machine& machine,
                             const profile::Calibration& calibration) {
  if (!scenario.model)
    fail(
        "{}: there is no [model] (a search of layouts divides one). Add [model] preset = \"175b\".",
        scenario.name);
  require_modelled(scenario);
  LayoutProblem problem;
  problem.model = row_of_model(*scenario.model, machine.name, global_batch_of(scenario));
  problem.model.sequence_parallel = scenario.parallel.sharding.sequence_parallel;
  problem.model.bucket = scenario.parallel.sharding.bucket;
  problem.machine = &machine;
  problem.values = values_of(machine, calibration);
  if (const auto found = calibration.find(machine.name); found != calibration.end())
    problem.interval = {found->second.low, found->second.high};
  problem.memory = machine.memory;
  add_sites(scenario, problem);
  return problem;
}

}  // namespace longhaul::planner
