#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;  // every file that reads Options sees this header
}

namespace longhaul {

/// What was asked of `longhaul plan`, as typed; empty: the default.
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
void add_plan_options(CLI::App& command, PlanArguments& arguments);

}  // namespace longhaul
