#include "planner/robust/robust.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/error.hpp"
#include "plan/link_model/jitter.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/search/makespan.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

Bandwidth slower(Bandwidth rate, double factor) {
  return rate.is_unlimited() ? rate : Bandwidth{rate.bits_per_second() / factor};
}

Duration last_end(const OpTimes& times) {
  Duration last{};
  for (const OpTime& time : times) last = std::max(last, time.end);
  return last;
}

bool is_there(const std::vector<RobustCandidate>& candidates, const Schedule& schedule) {
  return std::ranges::any_of(candidates, [&](const RobustCandidate& other) {
    return other.schedule.rows == schedule.rows &&
           other.schedule.device_of_chunk == schedule.device_of_chunk &&
           other.schedule.link_orders == schedule.link_orders;
  });
}

/// Everything there is to choose from, untimed. A search that finds what another found adds
/// nothing.
Result<std::vector<RobustCandidate>> gather(const Scenario& scenario, const RobustOptions& options,
                                            const SearchResult& as_profiled) {
  std::vector<RobustCandidate> all{{as_profiled.schedule, "best", {}}};
  for (const double factor : options.conservative) {
    Result<SearchResult> found = try_find_best(conservative(scenario, factor), options.search);
    if (!found) return found.refusal();
    if (is_there(all, found->schedule)) continue;
    all.push_back(
        {(*std::move(found)).schedule, fmt::format("best for links {} times as slow", factor), {}});
  }
  for (const Candidate& candidate : as_profiled.candidates.fitting) {
    if (!is_there(all, candidate.schedule))
      all.push_back({candidate.schedule, candidate.schedule.name, {}});
  }
  return all;
}

}  // namespace

std::vector<Duration> makespans_under_jitter(const Schedule& schedule, const Scenario& scenario,
                                             Arrangement arrangement, int samples) {
  plan::JitteredPlan plan{lower_reported(schedule, scenario, arrangement).plan, scenario};
  std::vector<Duration> makespans;
  for (int sample = 0; sample < samples; ++sample)
    makespans.push_back(last_end(sim::simulate(plan.in(static_cast<std::uint64_t>(sample)))));
  return makespans;
}

Duration quantile_of(std::vector<Duration> times, double quantile) {
  LONGHAUL_ASSERT(!times.empty() && quantile > 0 && quantile <= 1, "quantile {} of {}", quantile,
                  times.size());
  const double rank = std::ceil(quantile * static_cast<double>(times.size()));
  const auto at = times.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::ranges::nth_element(times, at);
  return *at;
}

UnderJitter under_jitter(const Schedule& schedule, const Scenario& scenario,
                         const RobustOptions& options) {
  const Arrangement arrangement = options.search.arrangement;
  const auto times = makespans_under_jitter(schedule, scenario, arrangement, options.samples);
  UnderJitter result;
  result.nominal = makespan_of(schedule, scenario, arrangement);
  result.mean = std::accumulate(times.begin(), times.end(), Duration::zero()) / options.samples;
  result.median = quantile_of(times, 0.5);
  result.tail = quantile_of(times, options.quantile);
  return result;
}

Scenario conservative(Scenario scenario, double factor) {
  for (Link& link : scenario.links) {
    link.latency = scaled(link.latency, factor);
    link.bandwidth = slower(link.bandwidth, factor);
  }
  for (NodeInterfaces& node : scenario.nodes) {
    node.egress = slower(node.egress, factor);
    node.ingress = slower(node.ingress, factor);
  }
  return scenario;
}

void require_jitter(const Scenario& scenario) {
  if (std::ranges::any_of(scenario.links, [](const Link& link) { return link.jitter.any(); }))
    return;
  fail(
      "--robust has nothing to hold schedules against (no link of {} has jitter). Add jitter = 0.2 "
      "to a [[link]], or --set link.jitter=0.2.",
      scenario.name);
}

Result<RobustChoice> pick_robust(const Scenario& scenario, const RobustOptions& options) {
  require_jitter(scenario);
  RobustChoice choice;
  Result<SearchResult> as_profiled = try_find_best(scenario, options.search);
  if (!as_profiled) return as_profiled.refusal();
  choice.as_profiled = *std::move(as_profiled);
  Result<std::vector<RobustCandidate>> candidates = gather(scenario, options, choice.as_profiled);
  if (!candidates) return candidates.refusal();
  choice.candidates = *std::move(candidates);
  for (RobustCandidate& candidate : choice.candidates)
    candidate.times = under_jitter(candidate.schedule, scenario, options);
  std::ranges::stable_sort(choice.candidates, {}, [](const RobustCandidate& candidate) {
    return std::tuple{candidate.times.tail, candidate.times.mean};
  });
  choice.schedule = choice.candidates.front().schedule;
  choice.schedule.name = "best";
  return choice;
}

}  // namespace longhaul::planner
