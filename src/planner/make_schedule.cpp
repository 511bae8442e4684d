#include "planner/make_schedule.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/suggest.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "planner/wan_sharing/shared_best.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/share_wan.hpp"

namespace longhaul {
namespace {

/// A schedule that is looked for.
struct Planner {
  std::string_view name;
  std::string_view summary;
  ScheduleResult (*make)(const Scenario& scenario, const PlannerOptions& options);
};

ScheduleResult make_robust(const Scenario& scenario, const PlannerOptions& options) {
  RobustOptions robust;
  robust.search = options.search;
  RobustChoice choice = pick_robust(scenario, robust);
  ScheduleResult made{choice.schedule, choice.as_profiled, std::nullopt, std::nullopt};
  made.robust = std::move(choice);
  return made;
}

ScheduleResult make_best(const Scenario& scenario, const PlannerOptions& options) {
  if (options.robust) return make_robust(scenario, options);
  SearchResult found = find_best(scenario, options.search);
  Schedule schedule = found.schedule;
  return {std::move(schedule), std::move(found), std::nullopt, std::nullopt};
}

ScheduleResult make_shared_best(const Scenario& scenario, const PlannerOptions& options) {
  if (options.robust)
    fail(
        "atlas+best knows no jitter (its turns are made for the links as profiled). Leave out "
        "--robust.");
  SearchResult found = find_shared_best(scenario, options.search);
  Schedule schedule = found.schedule;
  return {std::move(schedule), std::move(found), std::nullopt, std::nullopt};
}

/// The solver starts from the best schedule of its placement that a search finds.
template <Placement placement>
ScheduleResult make_solved(const Scenario& scenario, const PlannerOptions& options) {
  SearchOptions search = options.search;
  search.placements = {placement};
  SolverOptions solver = options.solver;
  solver.arrangement = search.arrangement;
  if (search.threads > 0) solver.threads = search.threads;
  ScheduleResult made;
  made.found = find_best(scenario, search);
  made.solved = solve(placement, scenario, made.found->schedule, solver);
  made.schedule = made.solved->schedule;
  return made;
}

constexpr std::array kPlanners{
    Planner{"best", "the best of all static and dynamic ones that fit, improved by search",
            make_best},
    Planner{"atlas+best", "rows and WAN turns of Atlas' cells, searched together",
            make_shared_best},
    Planner{"cross-ud-opt", "by a solver, from the best of one stage a device (CrossPipe 4.1)",
            make_solved<Placement::unidirectional>},
    Planner{"cross-wave-opt", "by a solver, from the best of two chunks in a V (CrossPipe 4.1)",
            make_solved<Placement::wave>},
};

constexpr std::string_view kShares = "atlas+";
/// All schedules that share the WAN in time.
constexpr std::string_view kSharedGroup = "shared";

/// NAME of "atlas+NAME"; nullopt for other names.
std::optional<std::string_view> shared_name(std::string_view name) {
  if (!name.starts_with(kShares)) return std::nullopt;
  return name.substr(kShares.size());
}

/// Does the generator make cells by itself, as "atlas" does?
bool makes_cells(std::string_view generator) {
  return generator == "atlas" || generator.starts_with("atlas-");
}

struct Group {
  std::string_view name;
  Knowledge knowledge;
};
constexpr std::array kGroups{Group{"static", Knowledge::counts},
                             Group{"dynamic", Knowledge::times}};

const Planner* find_planner(std::string_view name) {
  const auto found = std::ranges::find(kPlanners, name, &Planner::name);
  return found == kPlanners.end() ? nullptr : &*found;
}

std::vector<std::string> known_words() {
  std::vector<std::string> words;
  for (const Group& group : kGroups) words.emplace_back(group.name);
  words.emplace_back(kSharedGroup);
  for (const ScheduleName& schedule : schedule_names()) words.push_back(schedule.name);
  return words;
}

[[noreturn]] void refuse_unknown(std::string_view name) {
  if (const auto shared = shared_name(name)) {
    std::vector<std::string> words;
    for (const ScheduleName& known : schedule_names())
      if (!makes_cells(known.name) && !shared_name(known.name)) words.push_back(known.name);
    fail("There is no schedule \"{}\" that pipelines could share the WAN under (\"{}\"). {}",
         *shared, name, suggestion(*shared, words));
  }
  fail("There is no schedule \"{}\". {}", name, suggestion(name, known_words()));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

void append(std::vector<RequestedSchedule>& requested, std::string_view name, bool from_group) {
  if (std::ranges::find(requested, name, &RequestedSchedule::name) != requested.end())
    fail("Schedule \"{}\" is named twice (a report has one line for each). Leave one out.", name);
  requested.push_back({std::string{name}, from_group});
}

bool is_known(std::string_view name) {
  if (find_planner(name) != nullptr || find_generator(name) != nullptr) return true;
  const auto shared = shared_name(name);
  return shared && !makes_cells(*shared) && !shared_name(*shared) && is_known(*shared);
}

void append_shared(std::vector<RequestedSchedule>& requested) {
  for (const Generator& generator : generators()) {
    const bool alone = makes_cells(generator.name);
    append(requested, fmt::format("{}{}", alone ? "" : kShares, generator.name), true);
  }
}

void append_word(std::vector<RequestedSchedule>& requested, std::string_view word) {
  const auto group = std::ranges::find(kGroups, word, &Group::name);
  if (group != kGroups.end()) {
    for (const Generator& generator : generators())
      if (generator.knowledge == group->knowledge) append(requested, generator.name, true);
  } else if (word == kSharedGroup) {
    append_shared(requested);
  } else if (word.ends_with(".csv") || is_known(word)) {
    append(requested, word, false);
  } else {
    refuse_unknown(word);
  }
}

}  // namespace

const std::vector<ScheduleName>& schedule_names() {
  static const std::vector<ScheduleName> kNames = [] {
    std::vector<ScheduleName> names;
    for (const Generator& generator : generators())
      names.push_back({std::string{generator.name}, std::string{generator.summary}});
    for (const Planner& planner : kPlanners)
      names.push_back({std::string{planner.name}, std::string{planner.summary}});
    return names;
  }();
  return kNames;
}

bool is_looked_for(std::string_view name) {
  return find_planner(name) != nullptr || find_planner(shared_name(name).value_or("")) != nullptr;
}

std::vector<RequestedSchedule> requested_schedules(std::string_view list) {
  std::vector<RequestedSchedule> requested;
  for (std::string_view rest = list;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = trimmed(rest.substr(0, comma));
    if (word.empty())
      fail("The list of schedules \"{}\" has an empty name. Known: {}, or a file.csv.", list,
           fmt::join(known_words(), ", "));
    append_word(requested, word);
    if (comma == std::string_view::npos) return requested;
    rest.remove_prefix(comma + 1);
  }
}

ScheduleResult make_schedule(std::string_view name, const Scenario& scenario,
                             const PlannerOptions& options) {
  if (const Planner* planner = find_planner(name)) return planner->make(scenario, options);
  if (!is_known(name)) refuse_unknown(name);
  if (const auto shared = shared_name(name)) {
    // It plans on the links as a pipeline has them while it is its turn.
    ScheduleResult made = make_schedule(*shared, pooled_links(scenario), options);
    return {share_wan(made.schedule, scenario), std::nullopt, std::nullopt, std::nullopt};
  }
  return {generate(name, scenario), std::nullopt, std::nullopt, std::nullopt};
}

}  // namespace longhaul
