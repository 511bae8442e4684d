#pragma once

#include <string>
#include <vector>

namespace longhaul {

class Arguments;

/// The options of `longhaul plan` as typed; empty: the default.
struct PlanArguments {
  std::string order;
  std::string search;
  std::string objective;
  std::string most_cells;
  std::string pipelines;
  std::string threads;
  std::string limit;
  bool pooled = false;
  std::vector<std::string> sweeps;
  std::string break_even;
  std::string latencies;
  std::string tolerance;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_plan_options(Arguments& command, PlanArguments& arguments);

}  // namespace longhaul
