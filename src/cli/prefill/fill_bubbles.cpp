#include <algorithm>
#include <unordered_map>

#include "base/clock.hpp"
#include "base/index.hpp"
#include "cli/prefill/filled_schedule.hpp"
#include "plan/rows.hpp"
#include "prefill/accounts/training_state.hpp"
#include "prefill/play/real_times.hpp"

namespace longhaul::cli {
namespace {

prefill::ControllerMeans means_of(const SimulatedBubbles& bubbles, const Scenario& scenario,
                                  const PrefillInput& input,
                                  const std::vector<prefill::Served>& served) {
  const Duration period = bubbles.iteration.period;
  prefill::ControllerMeans means;
  means.sending = input.sending;
  auto free =
      prefill::free_memory_steps(bubbles.schedule, scenario, bubbles.plan, bubbles.times, served);
  if (std::ranges::any_of(free, [](const auto& steps) { return !steps.empty(); }))
    means.memory.emplace(period, std::move(free));
  means.link.emplace(period,
                     prefill::interface_holds(bubbles.plan, bubbles.times, bubbles.iteration.gpus));
  return means;
}

void fill_open_loop(const Scenario& scenario, const PrefillInput& input, FilledSchedule& filled) {
  const SimulatedBubbles& bubbles = filled.bubbles;
  prefill::InferenceController controller{
      prefill::serving_sites(scenario, filled.served, bubbles.iteration, input.policy, {},
                             means_of(bubbles, scenario, input, filled.served)),
      input.regions, input.routing};
  const TimePoint begin = now();
  filled.decisions = prefill::place_open_loop(controller, input.requests);
  filled.placement = (now() - begin) / std::max<std::int64_t>(1, std::ssize(filled.decisions));
  for (const prefill::ServingSite& site : controller.sites())
    if (const auto& link = site.controller.means().link) filled.kv_delay += link->waited();
}

/// Weather is played, as takes_ns is.
void require_calm_links(const Plan& plan, const Scenario& scenario) {
  if (plan::Weather{plan, scenario}.calm()) return;
  const auto varies = [](const Link& link) { return link.weather.any() || link.jitter.any(); };
  const Link& link = *std::ranges::find_if(scenario.links, varies);
  fail(
      "--stream: requests are forgotten once they are answered, and weather of links is played (of "
      "the link from {} to {}). Leave its jitter, loss, trace and outage out.",
      scenario.datacenters[index(link.from)].name, scenario.datacenters[index(link.to)].name);
}

/// Of what was filled: the time of the whole stretch.
Duration wall_of(const FilledSchedule& filled) {
  return filled.played ? filled.played->wall
                       : filled.bubbles.iteration.period *
                             std::max<std::int64_t>(1, filled.outcome.iterations);
}

/// The bubbles of a run that was played, as one iteration.
prefill::IterationBubbles played_bubbles(const prefill::PlayOutcome& played, int gpus) {
  std::vector<TimelineRow> rows;
  for (int rank = 0; rank < gpus; ++rank)
    for (const prefill::PrefillSpan& block : played.blocks[at(rank)]) {
      TimelineRow& row = rows.emplace_back();
      row.rank = rank;
      row.start_ns = block.start.count();
      row.end_ns = block.end.count();
    }
  TimelineRow& last = rows.emplace_back();  // a run may end with a message
  last.kind = RowKind::send;
  last.end_ns = played.wall.count();
  return prefill::find_bubbles(rows, gpus);
}

/// The idle time of GPUs that serve, the only bound of a run that was played (windows, prompts'
/// times and arrivals are those of the plan) and of a stream (of which no one knows all prompts).
prefill::UtilisationBounds bounds_of_idle(const prefill::IterationBubbles& real,
                                          const std::vector<prefill::Served>& served) {
  std::vector<bool> serves(to_size(real.gpus), false);
  for (const prefill::Served& each : served)
    for (const prefill::Pipeline& pipeline : each.serving.pipelines)
      for (const std::int32_t rank : pipeline.ranks) serves[at(rank)] = true;
  Duration idle{};
  for (const prefill::Bubble& bubble : real.bubbles)
    if (serves[at(bubble.rank)]) idle += bubble.length();
  prefill::UtilisationBounds bounds;
  if (real.period > Duration{})
    bounds.bubbles = static_cast<double>((real.busy + idle).count()) /
                     (static_cast<double>(real.period.count()) * real.gpus);
  return bounds;
}

/// Plays the answers beside training with other times; outcome and idle time are of that run.
void play(const Scenario& scenario, const PrefillInput& input, const plan::Weather& weather,
          FilledSchedule& filled) {
  const SimulatedBubbles& bubbles = filled.bubbles;
  const int gpus = bubbles.iteration.gpus;
  const std::vector<prefill::Served>& served = filled.served;
  prefill::PlayedTimes times;
  times.block_factor = [&](OpId op, DeviceId device, int iteration) {
    return plan::block_time_factor(scenario.run, device, op, iteration);
  };
  using Load = prefill::RealTimes::Load;
  const prefill::RealTimes real_times{
      input.requests, input.backlog ? Load::backlog : Load::open_loop, scenario.run.seed};
  std::unordered_map<std::int64_t, double> noise;  // of each request's model
  for (const prefill::Decision& each : filled.decisions)
    noise[each.request] = scenario.served[each.model].noise;
  times.prefill_time = [&](std::int64_t id, Duration estimate) {
    return real_times.of(id, estimate, noise.at(id));
  };
  times.weather = weather.calm() ? nullptr : &weather;
  prefill::PlayOptions options{.signals = input.signals.value_or(prefill::Signals::both),
                               .overrun = input.overrun,
                               .careless = input.policy == prefill::PlacementPolicy::careless,
                               .iterations = filled.outcome.iterations};
  const prefill::TrainingGraph graph{bubbles.plan, bubbles.times, gpus};
  prefill::PlayOutcome played =
      prefill::play_prefills(graph, served, filled.decisions, times, options);
  filled.decisions = played.decisions;
  const prefill::IterationBubbles real = played_bubbles(played, gpus);
  const std::int64_t iterations = filled.outcome.iterations;
  filled.outcome = prefill::summarize_decisions(real, served, filled.decisions, 1);
  filled.outcome.iterations = iterations;
  prefill::Utilisation& share = filled.outcome.utilisation;
  share.prefill = static_cast<double>(played.filled.count()) /
                  (static_cast<double>(played.wall.count()) * gpus);
  share.total = share.training + share.prefill;
  filled.idle =
      prefill::idle_by_cause({real, served, filled.decisions, 1, input.backlog.has_value(),
                              played.prefills, played.declined_idle});
  filled.bounds = bounds_of_idle(real, served);
  filled.played = std::move(played);
}

}  // namespace

double value_per_second(const FilledSchedule& filled, double rank_hour, Duration fastest,
                        double price) {
  const double of_iteration =
      filled.bubbles.iteration.gpus * rank_hour * static_cast<double>(fastest.count()) / 3.6e12;
  const auto iterations = std::max<std::int64_t>(1, filled.outcome.iterations);
  return (static_cast<double>(iterations) * of_iteration +
          static_cast<double>(filled.outcome.tokens_served) * price / 1e6) *
         1e9 / static_cast<double>(wall_of(filled).count());
}

ScheduleValue schedule_value(const Scenario& scenario, const std::vector<FilledSchedule>& all,
                             double price) {
  const auto given = prefill::gpu_hour_of(scenario);
  ScheduleValue value{
      .gpu_hour = given.value_or(kAssumedGpuHour), .is_assumed = !given, .per_second = {}};
  Duration fastest = Duration::max();
  for (const FilledSchedule& each : all) fastest = std::min(fastest, each.bubbles.iteration.period);
  for (const FilledSchedule& each : all)
    value.per_second.push_back(
        value_per_second(each, value.gpu_hour * prefill::gpus_of_rank(scenario), fastest, price));
  value.chosen = static_cast<std::size_t>(std::ranges::max_element(value.per_second) -
                                          value.per_second.begin());
  return value;
}

FilledSchedule fill_from_stream(SimulatedBubbles bubbles, const Scenario& scenario,
                                const PrefillInput& input,
                                const std::function<void(const prefill::Decision&)>& take) {
  FilledSchedule filled{.bubbles = std::move(bubbles), .is_stream = true};
  const prefill::IterationBubbles& iteration = filled.bubbles.iteration;
  filled.served = prefill::served_models(scenario, filled.bubbles.cell, iteration);
  const std::vector<prefill::Served>& served = filled.served;
  require_calm_links(filled.bubbles.plan, scenario);
  prefill::InferenceController controller{
      prefill::serving_sites(scenario, served, iteration, input.policy, {},
                             means_of(filled.bubbles, scenario, input, served)),
      input.regions, input.routing};
  prefill::RequestFile file{input.stream};
  prefill::OfferedStream requests{file, input.offered};
  prefill::OutcomeSum sum{iteration, served};
  prefill::TimeHistogram ttft;
  const TimePoint begin = now();
  std::int64_t count = 0;
  for (; const auto request = requests.next(); ++count) {
    if (request->takes)
      fail("request {}: takes_ns is played, which needs all requests. Leave --stream out.",
           request->id);
    const prefill::Decision decision = controller.decide(*request);
    sum.add(decision);
    if (decision.is_done()) ttft.add(decision.ttft());
    take(decision);
  }
  if (count == 0) fail("--window: no request of {} arrives in it. Widen it.", input.stream);
  filled.placement = (now() - begin) / count;
  for (const prefill::ServingSite& site : controller.sites())
    if (const auto& link = site.controller.means().link) filled.kv_delay += link->waited();
  filled.outcome = sum.of(std::nullopt);
  filled.outcome.ttft = ttft.percentiles();
  filled.bounds = bounds_of_idle(iteration, served);
  return filled;
}

FilledSchedule place_prompts(SimulatedBubbles bubbles, const Scenario& scenario,
                             const PrefillInput& input) {
  FilledSchedule filled{.bubbles = std::move(bubbles)};
  const prefill::IterationBubbles& iteration = filled.bubbles.iteration;
  filled.served = prefill::served_models(scenario, filled.bubbles.cell, iteration);
  const std::vector<prefill::Served>& served = filled.served;
  std::optional<std::int64_t> iterations;
  if (input.backlog) {
    iterations = input.backlog->iterations;
    prefill::ControllerMeans means = means_of(filled.bubbles, scenario, input, served);
    const TimePoint begin = now();
    filled.decisions = prefill::place_backlog(iteration, served, input.requests, input.policy,
                                              *input.backlog, means);
    filled.placement = (now() - begin) / std::max<std::int64_t>(1, std::ssize(filled.decisions));
    prefill::send_backlog_keys(filled.decisions, served, means.sending, *means.link);
    filled.kv_delay = means.link->waited();
  } else {
    fill_open_loop(scenario, input, filled);
  }
  filled.outcome = prefill::summarize_decisions(iteration, served, filled.decisions, iterations);
  const plan::Weather weather{filled.bubbles.plan, scenario};
  if (input.signals || input.policy == prefill::PlacementPolicy::careless ||
      !prefill::varying_times(scenario, input.requests, weather.calm()).empty())
    play(scenario, input, weather, filled);
  return filled;
}

FilledSchedule fill_bubbles(SimulatedBubbles bubbles, const Scenario& scenario,
                            const PrefillInput& input) {
  FilledSchedule filled = place_prompts(std::move(bubbles), scenario, input);
  const prefill::IterationBubbles& iteration = filled.bubbles.iteration;
  if (!filled.played) {
    filled.idle = prefill::idle_by_cause(iteration, filled.served, filled.decisions,
                                         filled.outcome.iterations, input.backlog.has_value());
    const auto waiting = input.backlog ? std::optional{input.backlog->waiting} : std::nullopt;
    filled.bounds = prefill::utilisation_bounds(iteration, filled.served, input.requests, waiting,
                                                filled.outcome.iterations);
  }
  if (const auto price = prefill::gpu_hour_of(scenario))
    filled.cost = prefill::prefill_cost(
        filled.served, filled.decisions, iteration.gpus * prefill::gpus_of_rank(scenario), *price,
        wall_of(filled), filled.played ? filled.played->delay : Duration{});
  return filled;
}

}  // namespace longhaul::cli
