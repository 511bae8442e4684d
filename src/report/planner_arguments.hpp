#pragma once

#include <string>

#include "planner/make_schedule.hpp"

namespace longhaul {
class Arguments;
}

namespace longhaul::report {

/// Options of schedules that are found by search, as typed; empty: the default.
struct PlannerArguments {
  std::string search_time;
  std::string search_moves;
  std::string search_threads;
  std::string search_seed;
  std::string placement;
  bool robust = false;
  std::string time_limit;
  bool any_microbatch_order = false;
  bool solver_without_dp = false;
  bool solver_without_fusion = false;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_planner_options(Arguments& command, PlannerArguments& arguments);

/// Throws Error that names the option whose value is wrong.
[[nodiscard]] planner::PlannerOptions planner_options_of(const PlannerArguments& arguments,
                                                         Arrangement arrangement);

}  // namespace longhaul::report
