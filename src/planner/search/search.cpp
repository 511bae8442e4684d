#include "planner/search/search.hpp"

#include "base/error.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/portfolio.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {

ImprovementResult improve(const Schedule& start, const Scenario& scenario,
                          const SearchOptions& options) {
  if (const auto violation = schedule::first_violation(start, scenario))
    throw Error{violation->text};
  ImprovementResult improved{start, makespan_of(start, scenario, options.arrangement), 0, 0};
  SearchOptions one_thread = options;
  one_thread.threads = 1;
  Portfolio portfolio{scenario, one_thread};
  portfolio.add_layout(start);
  portfolio.add(start);
  if (portfolio.starts().empty()) return improved;
  Portfolio::Outcome found = portfolio.run();
  improved.moves = found.moves;
  improved.accepted = found.accepted;
  if (found.makespan >= improved.makespan.count()) return improved;
  found.schedule.name = start.name;
  improved.schedule = std::move(found.schedule);
  improved.makespan = Duration{found.makespan};
  return improved;
}

}  // namespace longhaul::planner
