#include "planner/choose_schedules.hpp"

#include <algorithm>

#include "base/program/program.hpp"
#include "planner/plan_memory.hpp"
#include "planner/search/in_parallel.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

bool every_pair_is_linked(const Scenario& scenario) {
  const std::size_t datacenters = scenario.datacenters.size();
  const auto pairs =
      std::ranges::count_if(scenario.links, [](const Link& link) { return link.from != link.to; });
  return static_cast<std::size_t>(pairs) == datacenters * (datacenters - 1);
}

/// Reports and traces tell schedules apart by name: a file whose name is taken keeps its path.
void make_name_unique(Schedule& schedule, const ScheduleRequest& request,
                      const std::vector<ScheduleResult>& others) {
  const bool taken = std::ranges::any_of(
      others, [&](const ScheduleResult& other) { return other.schedule.name == schedule.name; });
  if (taken && request.is_file()) schedule.name = request.name;
}

}  // namespace

Result<ScheduleResult> ScheduleChooser::read_runnable(const ScheduleRequest& request) const {
  const auto refuse = [&](const std::string& why) {
    return Refusal{fmt::format("{}: {}", request.file.string(), why), ExitCode::answer_is_no};
  };
  Schedule schedule = schedule::read_schedule_file(request.file);
  if (schedule.replicas_share_rows()) schedule.replicas = scenario_.parallel.replicas;
  if (const auto why = schedule::violation_but_memory(schedule, scenario_)) return refuse(*why);
  if (request.put_in_cells) {
    Result<Schedule> shared = try_share_wan(schedule, scenario_);
    if (!shared) return shared.refusal();
    schedule = *std::move(shared);
  }
  if (const auto why = why_not_runnable(schedule, scenario_, options_.search.arrangement))
    return refuse(why->reason);
  return ScheduleResult{std::move(schedule)};
}

/// Chunks that go round the devices may meet where stages do not, so that a link that the scenario
/// can do without is missing.
Result<ScheduleResult> ScheduleChooser::make_runnable(const ScheduleRequest& request) const {
  Result<ScheduleResult> made = try_make(request, scenario_, options_);
  if (!made || every_pair_is_linked(scenario_)) return made;
  if (auto why = why_not_runnable(made->schedule, scenario_, options_.search.arrangement))
    return Refusal{std::move(why->reason)};
  return made;
}

Result<ScheduleResult> ScheduleChooser::try_choose(const ScheduleRequest& request) const {
  return request.is_file() ? read_runnable(request) : make_runnable(request);
}

/// Those that are neither looked for nor read, made on all threads: what came of each, by request.
std::vector<ScheduleChooser::Attempt> ScheduleChooser::make_plain() const {
  std::vector<Attempt> attempts(requests_.size());
  in_parallel(requests_.size(), options_.search.threads, [&](std::size_t i) {
    if (requests_[i].is_looked_for() || requests_[i].is_file()) return;
    try {
      attempts[i].result = try_choose(requests_[i]);
    } catch (...) {
      attempts[i].failure = std::current_exception();
    }
  });
  return attempts;
}

ChosenSchedules ScheduleChooser::choose() const {
  require_plan_memory(scenario_, free_memory());
  ChosenSchedules chosen;
  std::optional<Progress> progress;
  std::vector<Attempt> attempts = make_plain();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const ScheduleRequest& request = requests_[i];
    if (request.is_looked_for()) {
      progress.emplace("looking for schedules", std::ssize(requests_));
      progress->update(std::ssize(chosen.schedules), request.name);
    }
    if (attempts[i].failure) std::rethrow_exception(attempts[i].failure);
    Result<ScheduleResult> tried =
        attempts[i].result ? *std::move(attempts[i].result) : try_choose(request);
    if (!tried && request.from_group) {
      chosen.skipped.push_back({request.name, tried.refusal().reason});
      continue;
    }
    ScheduleResult made = std::move(tried).or_throw();
    make_name_unique(made.schedule, request, chosen.schedules);
    chosen.schedules.push_back(std::move(made));
  }
  return chosen;
}

ScheduleResult choose_schedule(const ScheduleRequest& request, const Scenario& scenario,
                               const PlannerOptions& options) {
  const ScheduleChooser chooser{{request}, scenario, options};
  return std::move(chooser.choose().schedules.front());
}

}  // namespace longhaul::planner
