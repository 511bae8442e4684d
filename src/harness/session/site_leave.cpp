#include "harness/session/site_leave.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/unit_text.hpp"
#include "harness/options/named_as.hpp"
#include "harness/ranks/main.hpp"
#include "planner/choose_schedules.hpp"
#include "planner/request.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

const std::string& rest_schedule(const PipelineOptions& options) {
  return options.rest_schedule.empty() ? options.schedule : options.rest_schedule;
}

const std::vector<std::string>& rest_overrides(const PipelineOptions& options) {
  return options.rest_overrides.empty() ? options.overrides : options.rest_overrides;
}

/// What is wrong with values of its own is said of --rest-set.
Scenario rest_scenario(const PipelineOptions& options) {
  const auto load = [&] { return scenario::load_scenario(options.rest, rest_overrides(options)); };
  return options.rest_overrides.empty() ? load() : named_as("--set", "--rest-set", load);
}

std::vector<Rank> ranks_in(const Scenario& scenario, const std::string& datacenter) {
  std::vector<Rank> ranks;
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    if (scenario.datacenters[index(scenario.datacenter_of(Rank{rank}))].name == datacenter)
      ranks.push_back(Rank{rank});
  return ranks;
}

std::string names_of(const Scenario& scenario) {
  std::string names;
  for (const Datacenter& datacenter : scenario.datacenters)
    names += (names.empty() ? "" : ", ") + datacenter.name;
  return names;
}

/// Each part runs one schedule, so that one follows the other; one that is not searched for is
/// made.
void check_schedule(const std::string& text, const Scenario& scenario,
                    const planner::PlannerOptions& options) {
  const auto requests = planner::parse_schedules(text);
  if (requests.size() != 1)
    fail("--leave with {} schedules ({}): each part of the run is of one. Give one.",
         requests.size(), text);
  if (!requests.front().is_looked_for())
    static_cast<void>(planner::ScheduleChooser{requests, scenario, options}.choose());
}

/// Whom rank 0 finds to leave and to stay: -1 for a rank without a place afterwards.
std::string planned(const PipelineOptions& options, const planner::PlannerOptions& planner,
                    int ranks) {
  const SiteLeave leave = parse_leave(options.leave);
  const Scenario whole = scenario::load_scenario(options.scenario, options.overrides);
  const int iterations = options.iterations.value_or(whole.run.iterations);
  if (leave.iteration >= iterations)
    fail(
        "--leave {}: the run has {} iterations, and both parts need one. Give an iteration from 1 "
        "to {}, or more --iterations.",
        options.leave, iterations, iterations - 1);
  const Scenario rest = rest_scenario(options);
  const auto places = ranks_of_rest(whole, rest, leave.site);
  if (whole.ranks() != ranks)
    fail("scenario {} needs {} ranks, but {} are running. Start it with scripts/mpi -n {}.",
         whole.name, whole.ranks(), ranks, whole.ranks());
  check_schedule(options.schedule, whole, planner);
  check_schedule(rest_schedule(options), rest, planner);
  Json text = {{"iterations", iterations},
               {"leave", ranks_in(whole, leave.site).size()},
               {"places", Json::array()}};
  for (const auto& place : places)
    text["places"].push_back(place ? static_cast<int>(index(*place)) : -1);
  return text.dump();
}

}  // namespace

SiteLeave parse_leave(const std::string& text) {
  const std::size_t at = text.rfind('@');
  SiteLeave leave;
  if (at != std::string::npos && at > 0) {
    leave.site = text.substr(0, at);
    const char* const end = text.data() + text.size();
    const auto [past, error] = std::from_chars(text.data() + at + 1, end, leave.iteration);
    if (error == std::errc{} && past == end && leave.iteration >= 1) return leave;
  }
  fail(
      "--leave {} is no SITE@ITERATION (a datacenter, and the first iteration without it, 1 or "
      "more). Write --leave east@3.",
      text);
}

std::vector<std::optional<Rank>> ranks_of_rest(const Scenario& whole, const Scenario& rest,
                                               const std::string& site) {
  if (std::ranges::none_of(whole.datacenters,
                           [&](const Datacenter& each) { return each.name == site; }))
    fail("--leave: scenario {} has no datacenter {} ({}). Name one of these.", whole.name, site,
         names_of(whole));
  std::vector<std::optional<Rank>> places(to_size(whole.ranks()));
  for (const Datacenter& datacenter : rest.datacenters) {
    const std::vector<Rank> wanted = ranks_in(rest, datacenter.name);
    if (wanted.empty()) continue;
    if (datacenter.name == site)
      fail(
          "--rest: scenario {} still has {} ranks in {}, which leaves. Plan it without (longhaul "
          "advise --without {}).",
          rest.name, wanted.size(), site, site);
    const std::vector<Rank> there = ranks_in(whole, datacenter.name);
    if (wanted.size() > there.size())
      fail("--rest: scenario {} has {} ranks in {}, and {} of {} stay there. Plan it with those.",
           rest.name, wanted.size(), datacenter.name, there.size(), whole.name);
    for (std::size_t i = 0; i < wanted.size(); ++i) places[index(there[i])] = wanted[i];
  }
  return places;
}

LeavingRun plan_leave(const comm::Communicator& world, const PipelineOptions& options,
                      const planner::PlannerOptions& planner) {
  const Json found =
      Json::parse(on_rank0(world, [&] { return planned(options, planner, world.size()); }));
  const SiteLeave leave = parse_leave(options.leave);
  LeavingRun run{options, options, {}, {}};
  run.before.iterations = leave.iteration;
  run.after.scenario = options.rest;
  run.after.schedule = rest_schedule(options);
  run.after.overrides = rest_overrides(options);
  if (!options.rest_overlap.empty())
    run.after.overlap = options.rest_overlap == kNoOverlap ? "" : options.rest_overlap;
  run.after.iterations = found["iterations"].get<int>() - leave.iteration;
  run.after.warmup = 0;
  run.after.fault.clear();
  if (!options.out.empty()) run.after.out = options.out / "rest";
  const auto places = found["places"].get<std::vector<int>>();
  for (const int place : places)
    run.places.push_back(place < 0 ? std::nullopt : std::optional{Rank{place}});
  const int gone = found["leave"].get<int>();
  run.left = {leave.site,
              leave.iteration,
              gone,
              static_cast<int>(std::ranges::count(places, -1)) - gone,
              {}};
  return run;
}

ExitCode run_on_some(const comm::Communicator& all, bool takes_part,
                     const std::function<ExitCode()>& work) {
  constexpr int kNoRank = std::numeric_limits<int>::max();
  const auto first = static_cast<int>(all.minimum(takes_part ? all.rank() : kNoRank));
  LONGHAUL_ASSERT(first != kNoRank, "{} ranks, none of which takes part", all.size());
  Json ended = {{"code", 0}, {"error", ""}};
  if (takes_part) {
    try {
      ended["code"] = static_cast<int>(work());
    } catch (const CollectiveError& error) {
      ended = {{"code", static_cast<int>(error.code())}, {"error", error.what()}};
    }
  }
  ended = Json::parse(all.broadcast(ended.dump(), first));
  const auto code = static_cast<ExitCode>(ended["code"].get<int>());
  const auto error = ended["error"].get<std::string>();
  if (!error.empty()) throw CollectiveError{error, code};
  return code;
}

std::string left_text(const SiteLeft& left) {
  std::string text =
      fmt::format("{} left after {} iterations ({} ranks", left.site, left.iteration, left.ranks);
  if (left.idle > 0) text += fmt::format("; {} more have no place", left.idle);
  return text + fmt::format("); the rest's first iteration began {} later\n", to_text(left.gap));
}

}  // namespace longhaul::harness
