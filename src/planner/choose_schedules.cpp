#include "planner/choose_schedules.hpp"

#include <algorithm>

#include "base/progress.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul {
namespace {

Result<MadeSchedule> read_runnable(const ScheduleRequest& request, const Scenario& scenario,
                                   Arrangement arrangement) {
  const auto refuse = [&](const std::string& why) {
    return Refusal{fmt::format("{}: {}", request.file.string(), why), ExitCode::answer_is_no};
  };
  Schedule schedule = read_schedule_for(request.file, scenario);
  if (const auto why = violation_but_memory(schedule, scenario)) return refuse(*why);
  if (request.put_in_cells) {
    Result<Schedule> shared = try_share_wan(schedule, scenario);
    if (!shared) return shared.refusal();
    schedule = *std::move(shared);
  }
  if (const auto why = why_not_runnable(schedule, scenario, arrangement))
    return refuse(why->reason);
  return MadeSchedule{std::move(schedule)};
}

bool every_pair_is_linked(const Scenario& scenario) {
  const std::size_t datacenters = scenario.datacenters.size();
  const auto pairs =
      std::ranges::count_if(scenario.links, [](const Link& link) { return link.from != link.to; });
  return static_cast<std::size_t>(pairs) == datacenters * (datacenters - 1);
}

/// Chunks that go round the devices may meet where stages do not, so that a link that the scenario
/// can do without is missing.
Result<MadeSchedule> make_runnable(const ScheduleRequest& request, const Scenario& scenario,
                                   const PlannerOptions& options) {
  Result<MadeSchedule> made = try_make(request, scenario, options);
  if (!made || every_pair_is_linked(scenario)) return made;
  if (auto why = why_not_runnable(made->schedule, scenario, options.search.arrangement))
    return Refusal{std::move(why->reason)};
  return made;
}

/// Reports and traces tell schedules apart by name: a file whose name is taken keeps its path.
void make_name_unique(Schedule& schedule, const ScheduleRequest& request,
                      std::span<const MadeSchedule> others) {
  const bool taken = std::ranges::any_of(
      others, [&](const MadeSchedule& other) { return other.schedule.name == schedule.name; });
  if (taken && request.is_file()) schedule.name = request.name;
}

}  // namespace

Schedule read_schedule_for(const std::filesystem::path& file, const Scenario& scenario) {
  Schedule schedule = read_schedule_file(file);
  if (schedule.replicas_alike()) schedule.replicas = scenario.parallel.replicas;
  return schedule;
}

Result<MadeSchedule> try_choose(const ScheduleRequest& request, const Scenario& scenario,
                                const PlannerOptions& options) {
  return request.is_file() ? read_runnable(request, scenario, options.search.arrangement)
                           : make_runnable(request, scenario, options);
}

ChosenSchedules choose_schedules(std::span<const ScheduleRequest> requests,
                                 const Scenario& scenario, const PlannerOptions& options) {
  ChosenSchedules chosen;
  std::optional<Progress> progress;
  for (const ScheduleRequest& request : requests) {
    if (request.is_looked_for()) {
      progress.emplace("looking for schedules", std::ssize(requests));
      progress->update(std::ssize(chosen.schedules), request.name);
    }
    Result<MadeSchedule> made = try_choose(request, scenario, options);
    if (!made && request.from_group) {
      chosen.skipped.push_back({request.name, made.refusal().reason});
      continue;
    }
    chosen.schedules.push_back(std::move(made).or_throw());
    make_name_unique(chosen.schedules.back().schedule, request,
                     std::span{chosen.schedules}.first(chosen.schedules.size() - 1));
  }
  return chosen;
}

MadeSchedule choose_schedule(const ScheduleRequest& request, const Scenario& scenario,
                             const PlannerOptions& options) {
  return std::move(choose_schedules({&request, 1}, scenario, options).schedules.front());
}

}  // namespace longhaul
