#include "planner/sites/cell_times.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/make_schedule.hpp"
#include "planner/search/in_parallel.hpp"
#include "planner/sites/cell_scenario.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

std::int64_t bits(double value) { return std::bit_cast<std::int64_t>(value); }

/// Do pipelines of a cell hold a resource together that is not their turns' on the WAN?
bool share_something(const Scenario& scenario, const StagePlacement& placement) {
  const auto shared = [&](DatacenterId from, DatacenterId to) {
    const Link* const link = scenario.link(from, to);
    return link != nullptr &&
           (link->sharing == Sharing::datacenter || !link->aggregate.is_unlimited());
  };
  for (std::size_t i = 0; i < placement.size(); ++i) {
    const DatacenterId here = placement[i].datacenter;
    const NodeInterfaces* const nodes = scenario.interfaces(here);
    const bool several = nodes != nullptr && nodes->gpus > 1;
    if (several && (placement.size() > 1 || !nodes->internal.is_unlimited())) return true;
    if (shared(here, here)) return true;
    if (i > 0 &&
        (shared(placement[i - 1].datacenter, here) || shared(here, placement[i - 1].datacenter)))
      return true;
  }
  return false;
}

double busy_share(const Plan& plan, Duration time) {
  double computing = 0;
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::compute) computing += static_cast<double>(op.duration.count());
  }
  const double all = static_cast<double>(time.count()) * static_cast<double>(plan.ranks.size());
  return all > 0 ? computing / all : 0;
}

void append_link(const Link* link, int cells, std::vector<std::int64_t>& key) {
  if (link == nullptr) return key.push_back(-1);
  const bool whole = link->sharing == Sharing::pair;
  const double bandwidth = link->bandwidth.bits_per_second();
  key.insert(key.end(), {link->latency.count(), bits(whole ? bandwidth : bandwidth / cells), whole,
                         bits(link->aggregate.bits_per_second() / cells)});
}

Result<Plan> plan_of(const ScheduleRequest& request, const Scenario& scenario, CellModel model) {
  const Result<ScheduleResult> made = try_make(request, scenario);
  if (!made) return made.refusal();
  return made->schedule.cell > 1 && model == CellModel::pooled
             ? plan::try_lower_pooled(made->schedule, scenario)
             : plan::try_lower(made->schedule, scenario);
}

}  // namespace

Result<std::vector<CellTime>> CellTimes::try_times(std::span<const CellQuery> queries) {
  using Known = std::map<Key, CellTime>::iterator;
  struct Missing {
    const CellQuery* query;
    Known known;
    bool is_left = false;  ///< not simulated
  };
  std::vector<Known> at;
  std::vector<Missing> missing;
  for (const CellQuery& query : queries) {
    if (std::ranges::find(schedules_, query.schedule.name) == schedules_.end())
      schedules_.push_back(query.schedule.name);
    const auto [found, is_new] = known_.try_emplace(key_of(query));
    if (is_new) missing.push_back({&query, found});
    at.push_back(found);
  }
  in_parallel(missing.size(), threads_, [&](std::size_t i) {
    Missing& each = missing[i];
    each.is_left = stopped_ && stopped_();
    each.known->second =
        each.is_left ? CellTime{.failure = "the search was ended before it", .missing_link = {}}
                     : simulate_cell(*each.query);
  });
  std::vector<CellTime> times;
  for (const auto& found : at) {
    if (found->second.missing_link) return *found->second.missing_link;
    times.push_back(found->second);
  }
  for (const Missing& each : missing)
    if (each.is_left) known_.erase(each.known);
  return times;
}

std::size_t CellTimes::unknown(std::span<const CellQuery> queries) const {
  return to_size(std::ranges::count_if(queries, [&](const CellQuery& query) {
    return std::ranges::find(schedules_, query.schedule.name) == schedules_.end() ||
           !known_.contains(key_of(query));
  }));
}

CellTimes::Key CellTimes::key_of(const CellQuery& query) const {
  const Scenario& scenario = inventory_.scenario();
  const SiteLayout& layout = query.layout;
  Key key{std::ranges::find(schedules_, query.schedule.name) - schedules_.begin(),
          layout.pipelines};
  for (std::size_t i = 0; i < layout.placement.size(); ++i) {
    const DatacenterStages& share = layout.placement[i];
    const DatacenterId here = share.datacenter;
    if (i > 0) {
      const DatacenterId before = layout.placement[i - 1].datacenter;
      append_link(scenario.link(before, here), layout.cells, key);
      append_link(scenario.link(here, before), layout.cells, key);
    }
    key.insert(key.end(), {share.stages, bits(scenario.datacenters[index(here)].speed)});
    append_link(scenario.link(here, here), layout.cells, key);
    const NodeInterfaces* const nodes = scenario.interfaces(here);
    if (nodes == nullptr) {
      key.push_back(-1);
      continue;
    }
    key.insert(key.end(),
               {nodes->gpus, bits(nodes->egress.bits_per_second()),
                bits(nodes->ingress.bits_per_second()), bits(nodes->internal.bits_per_second())});
  }
  return key;
}

/// The scenario of one pipeline where the others are equal and independent.
Result<Scenario> CellTimes::scenario_of(const CellQuery& query) const {
  const SiteLayout& layout = query.layout;
  const bool together = (layout.placement.size() > 1 && query.schedule.shares_wan()) ||
                        share_something(inventory_.scenario(), layout.placement);
  return cell_scenario(inventory_, layout, together ? layout.pipelines : 1);
}

Duration CellTimes::least_time(const CellQuery& query, std::span<const schedule::LeastHop> hops,
                               Duration enough) const {
  // Where it is refused the simulation says why.
  if (!query.schedule.has_timetable()) return Duration::zero();
  const Result<Scenario> scenario = scenario_of(query);
  if (!scenario) return Duration::zero();
  const Result<Duration> least =
      schedule::least_time(*query.schedule.generator, *scenario, hops, enough);
  return least ? *least : Duration::zero();
}

CellTime CellTimes::simulate_cell(const CellQuery& query) const {
  CellTime result;
  const Result<Scenario> scenario = scenario_of(query);
  if (!scenario) {
    result.missing_link = scenario.refusal();
    return result;
  }
  const Result<Plan> plan = plan_of(query.schedule, *scenario, model_);
  const Result<OpTimes> times = plan ? sim::try_simulate(*plan) : plan.refusal();
  if (!times) {
    result.failure = times.refusal().reason;
    return result;
  }
  for (const OpTime& time : *times) result.time = std::max(result.time, time.end);
  result.busy = busy_share(*plan, result.time);
  return result;
}

}  // namespace longhaul::planner
