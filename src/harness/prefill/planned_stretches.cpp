#include "harness/prefill/planned_stretches.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rewrite/repeated.hpp"
#include "plan/rows.hpp"
#include "planner/choose_schedules.hpp"
#include "prefill/accounts/training_state.hpp"
#include "prefill/inference_controller.hpp"
#include "prefill/outcome.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

/// Every rank makes the schedule anew, so it must be the same one each time.
Schedule one_schedule(const std::string& name, const Scenario& scenario) {
  const planner::ScheduleRequest request = planner::parse_single_schedule_option(name);
  if (request.is_looked_for())
    fail(
        "--schedule {}: a search may end with another order on each rank. Give a file or a "
        "generator's name.",
        name);
  return planner::choose_schedule(request, scenario).schedule;
}

/// Slices are rounded one by one where they are played.
constexpr Duration kRounding = std::chrono::microseconds{1};

/// What GPUs have for prompts in each stretch. What ranks do late they do within the guard.
prefill::ControllerMeans means_of(const PlannedStretches& planned,
                                  const PrefillSettings& settings) {
  prefill::ControllerMeans means;
  means.sending = settings.kv;
  if (planned.sends_kv())
    means.link.emplace(
        planned.stretch_time(),
        prefill::interface_holds(planned.training, planned.predicted, planned.bubbles.gpus));
  if (!planned.limits_memory()) return means;
  means.memory.emplace(
      planned.stretch_time(),
      prefill::free_memory_steps(planned.schedule, planned.scenario, planned.training,
                                 planned.predicted, planned.served));
  for (const prefill::Served& each : planned.served)
    means.held_after = std::max(means.held_after, each.model.guard + kRounding);
  return means;
}

/// Each datacenter's controller has its decode rank; requests are at hand in all of them.
std::vector<prefill::Decision> place_with_kv(const PlannedStretches& planned,
                                             const PrefillSettings& settings,
                                             const prefill::FillRange& range) {
  const scenario::RegionTable nowhere;
  prefill::InferenceController controller{
      prefill::serving_sites(planned.scenario, planned.served, planned.bubbles, settings.policy,
                             range, means_of(planned, settings)),
      nowhere, prefill::Routing::ttft};
  std::vector<prefill::Request> requests = planned.requests;
  for (prefill::Request& request : requests) request.region.clear();
  return prefill::place_open_loop(controller, requests);
}

std::vector<prefill::Decision> place(const PlannedStretches& planned,
                                     const PrefillSettings& settings) {
  // A stretch without prefill may lie between one and the next.
  if (settings.backlog) {
    prefill::BacklogOptions backlog = *settings.backlog;
    backlog.apart = true;
    return prefill::place_backlog(planned.bubbles, planned.served, planned.requests,
                                  settings.policy, backlog, means_of(planned, settings));
  }
  const prefill::FillRange range{false, settings.pairs, true};
  if (planned.sends_kv()) return place_with_kv(planned, settings, range);
  prefill::Controller controller{planned.bubbles, planned.served, settings.policy, range,
                                 means_of(planned, settings)};
  return prefill::place_open_loop(controller, planned.requests);
}

/// Throws Error where the scenario or a request says something that ranks would not keep to.
void require_playable(const PlannedStretches& planned, const PrefillSettings& settings) {
  const bool is_planned = settings.controller == PrefillController::planned;
  for (const prefill::Served& each : planned.served) {
    const ServedModel& model = each.model;
    if (!is_planned && (model.chunk > 0 || model.batch > 1))
      fail(
          "{}: a live controller places whole prompts alone. Leave prefill.chunk and prefill.batch "
          "out, or write --controller planned.",
          model.name);
    for (const auto& [is_given, key, why] :
         {std::tuple{model.prefix_cache > Bytes{}, "prefix_cache", "keep no keys and values"},
          std::tuple{is_planned && model.noise > 0, "noise",
                     "play prefills as long as they are estimated"}})
      if (is_given) fail("{}: ranks {}. Leave prefill.{} out.", model.name, why, key);
  }
  if (planned.limits_memory() && settings.backlog && !is_planned)
    fail(
        "{}: a live backlog keeps no account of memory. Leave memory.capacity out, or write "
        "--controller planned.",
        planned.scenario.name);
  if (planned.limits_memory() && settings.backlog && planned.sends_kv())
    fail(
        "{}: a backlog keeps no account of keys and values that leave. Leave memory.capacity or "
        "prefill.decode out.",
        planned.scenario.name);
  if (planned.limits_memory() && settings.manners == prefill::Manners::careless)
    fail("{}: --policy careless keeps no account of memory. Leave memory.capacity out.",
         planned.scenario.name);
  for (const GoneController& each : settings.gone) (void)datacenter_of(planned.scenario, each);
  for (const prefill::Request& request : planned.requests)
    if (is_planned && request.takes)
      fail("request {}: ranks play prefills as long as they are estimated. Leave takes_ns out.",
           request.id);
}

std::vector<bool> seeded_orders(int pairs, std::uint64_t seed) {
  Random random{derived_seed(seed, 19, 0)};
  std::vector<bool> orders;
  for (int i = 0; i < pairs; ++i) orders.push_back(random.between(0, 1) == 1);
  return orders;
}

}  // namespace

DatacenterId datacenter_of(const Scenario& scenario, const GoneController& gone) {
  for (std::size_t i = 0; i < scenario.datacenters.size(); ++i)
    if (scenario.datacenters[i].name == gone.datacenter) return DatacenterId{static_cast<int>(i)};
  fail("--fault controller@{}: the scenario has no datacenter of that name.", gone.datacenter);
}

Scenario with_service_ranks(Scenario scenario, int cell) {
  if (!scenario.services.empty())
    fail(
        "{}: it has [[service]] ranks of its own (bench_prefill adds a controller, and a decode "
        "rank for each datacenter that serves). Leave them out.",
        scenario.name);
  std::set<DatacenterId> serving;
  // Which GPUs of a datacenter are a skewed pipeline follows from bubbles, that there is one not.
  prefill::IterationBubbles unknown;
  unknown.gpus = scenario.training_ranks();
  for (const prefill::Served& each : prefill::served_models(scenario, cell, unknown))
    for (const prefill::Pipeline& pipeline : each.serving.pipelines)
      serving.insert(scenario.is_placed() ? scenario.datacenter_of(Rank{pipeline.ranks.front()})
                                          : DatacenterId{0});
  const DatacenterId first = serving.empty() ? DatacenterId{0} : *serving.begin();
  scenario.add_services({RankRole::controller, first, 1});
  for (const DatacenterId each : serving) scenario.add_services({RankRole::decode, each, 1});
  return scenario;
}

PlannedStretches plan_stretches(Scenario scenario, const std::string& schedule,
                                const std::string& text, const std::string& name,
                                const PrefillSettings& settings) {
  PlannedStretches planned;
  planned.schedule = one_schedule(schedule, scenario);
  planned.time_scale = scenario.run.time_scale;
  const int cell = scenario.parallel.cell.value_or(planned.schedule.cell);
  planned.scenario = with_service_ranks(std::move(scenario), cell).as_played();
  const Plan once = plan::lower(planned.schedule, planned.scenario);
  planned.training = plan::repeated(once, settings.stretch);
  planned.predicted = sim::simulate(planned.training);
  planned.graph = std::make_shared<const prefill::TrainingGraph>(
      planned.training, planned.predicted, planned.scenario.training_ranks());
  Timeline rows;
  plan::append_rows(rows, planned.training, planned.predicted, 0);
  planned.bubbles =
      prefill::cut_at_ends(prefill::find_bubbles(rows.rows, planned.scenario.training_ranks()));
  planned.served = prefill::served_models(planned.scenario, cell, planned.bubbles);
  prefill::LoadOptions load = settings.load;
  load.seed = planned.scenario.run.seed;
  if (!settings.listen)
    planned.requests = prefill::offered_load(prefill::parse_requests(text, name), load);
  if (!settings.listen && planned.requests.empty())
    fail("--window: no request of {} arrives in it. Widen it.", name);
  planned.memory = std::make_shared<const prefill::MemoryBesideBlocks>(
      planned.schedule, planned.scenario, planned.training, *planned.graph, planned.served);
  require_playable(planned, settings);
  if (settings.controller == PrefillController::planned) {
    const TimePoint begin = now();
    planned.decisions = place(planned, settings);
    planned.placement = (now() - begin) / std::max<std::int64_t>(1, std::ssize(planned.decisions));
  }
  planned.prefill_first =
      seeded_orders(settings.warmup + settings.pairs, planned.scenario.run.seed);
  return planned;
}

bool PlannedStretches::limits_memory() const { return prefill::limits_memory(scenario); }

bool PlannedStretches::sends_kv() const {
  return std::ranges::any_of(served,
                             [](const auto& each) { return each.model.decode.has_value(); });
}

FilledStretch PlannedStretches::fill(int pair, const PrefillSettings& settings) const {
  FilledStretch stretch;
  stretch.demand.backlog = settings.backlog.has_value();
  const Duration begin = pair * stretch_time(), over = begin + stretch_time();
  for (prefill::Decision decision : decisions) {
    if (!decision.is_done() || decision.start < begin) continue;
    if (decision.start >= over && (stretch.demand.backlog || decision.arrival >= over)) continue;
    for (Duration* time : {&decision.arrival, &decision.wanted, &decision.start, &decision.end})
      *time -= begin;
    if (decision.start >= stretch_time()) {
      stretch.demand.waiting.push_back(decision);
      continue;
    }
    for (prefill::PlacedPass& pass : decision.passes) pass.start -= begin;
    for (Duration& until : decision.held_until) until -= begin;
    stretch.decisions.push_back(decision);
  }
  stretch.filled = prefill::fill_plan(
      training, predicted, stretch_time(), served, stretch.decisions,
      {settings.manners, settings.kv, graph, limits_memory() ? memory : nullptr});
  stretch.filled.plan.schedule += "+prefill";
  stretch.predicted =
      sim::simulate_results(plan::with_noise(stretch.filled.plan, scenario.run, pair));
  return stretch;
}

}  // namespace longhaul::harness
