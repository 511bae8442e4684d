#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/error.hpp"
#include "base/table.hpp"
#include "report/collective_options.hpp"
#include "report/planning.hpp"

namespace longhaul {
class Arguments;
}

namespace longhaul::cli {

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

/// Ends of the link that `link import` prints; empty where they are not given.
struct LinkArguments {
  std::string between;  ///< "a,b"
  std::string from;
  std::string to;
};

/// The options of `longhaul rule`, as typed; empty: not given.
struct RuleArguments {
  struct Operation {
    std::string comp, comm, inter_cost, intra_cost, in_cost, inter_size, intra_size, max_chunks;
    bool grouped = false;
  } operation;
  struct Layer {
    std::string w_ag, g_act, act_ag, g_w, act_rs, g_w_rs, others;
  } layer;
  struct Model {
    std::string c_ag, c_rs, c_fw, c_bw, activation, memory, microbatches;
  } model;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_rule_options(Arguments& command, RuleArguments::Operation& arguments);
void add_rule_options(Arguments& command, RuleArguments::Layer& arguments);
void add_rule_options(Arguments& command, RuleArguments::Model& arguments);

/// The options of `longhaul cluster`, as typed; empty: the default.
struct ClusterArguments {
  std::string gpus, throughput, policy, counts, slot, restart;
  bool no_deadlines = false;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_cluster_options(Arguments& command, ClusterArguments& arguments);

/// The options of `longhaul prefill`, as typed; empty: the default.
struct PrefillArguments {
  std::string requests, policy, placements_out;
  std::string rate, copies, window, poisson, backlog, patience;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_prefill_options(Arguments& command, PrefillArguments& arguments);

/// The options of `predict` and `profile fit`.
struct PredictArguments {
  std::string calibration;  ///< a file, or "none"; empty: none
  bool extrapolate = false;
};

/// The options of a command line. Each command reads those that it declares.
struct Options {
  std::vector<std::string> files;      ///< subjects of the command: scenario, trace, ...
  std::vector<std::string> overrides;  ///< --set PATH=VALUE
  std::string schedule;
  report::PlannerArguments planner;
  PlanArguments plan;                      ///< of `plan`
  report::CollectiveArguments collective;  ///< of `collective`
  int ties = 0;                            ///< of `collective`: simulations with ties at random
  std::string comm = "decoupled";
  std::string overlap;      ///< of `simulate`: a comma list; empty: none
  std::string granularity;  ///< empty: block; of `trace export`: as in the trace
  std::string format;
  std::string out;
  std::string scenario;  ///< of `check` for a schedule
  LinkArguments link;
  RuleArguments rule;
  ClusterArguments cluster;
  PredictArguments predict;
  PrefillArguments prefill;
  std::string expect;    ///< of `compare`
  std::string at_least;  ///< of `compare`: "1%"
  std::optional<int> iteration;
  std::optional<int> iterations;  ///< of `simulate`: played under weather
  std::optional<int> rank;
  bool bounds = false;  ///< of `simulate`: computes them for every schedule
  bool json = false;
  bool wide = false;         ///< tables with all their columns
  std::string command_line;  ///< as typed, for records
  std::string goal;          ///< of `schedule`: the simulator of --format goal
};

/// A command's text for stdout, and whether the answer is yes.
struct Answer {
  std::string text;
  ExitCode code = ExitCode::fine;
};

/// That of the command's tables.
[[nodiscard]] inline TableWidth table_width(const Options& options) {
  return options.wide ? TableWidth::whole : TableWidth::fitting;
}

/// Commands write nothing but the file of `out`, and that last; they throw Error on bad input.
[[nodiscard]] Answer schedule_command(const Options& options);
[[nodiscard]] Answer simulate_command(const Options& options);
[[nodiscard]] Answer check_command(const Options& options);
[[nodiscard]] Answer plan_command(const Options& options);
[[nodiscard]] Answer ops_command(const Options& options);
[[nodiscard]] Answer layers_command(const Options& options);
[[nodiscard]] Answer presets_command(const Options& options);
[[nodiscard]] Answer trace_summary_command(const Options& options);
[[nodiscard]] Answer trace_attribution_command(const Options& options);
[[nodiscard]] Answer trace_export_command(const Options& options);
[[nodiscard]] Answer trace_merge_command(const Options& options);
[[nodiscard]] Answer collective_command(const Options& options);
[[nodiscard]] Answer partition_command(const Options& options);
[[nodiscard]] Answer rule_operation_command(const Options& options);
[[nodiscard]] Answer rule_layer_command(const Options& options);
[[nodiscard]] Answer rule_model_command(const Options& options);
[[nodiscard]] Answer cluster_command(const Options& options);
[[nodiscard]] Answer bubbles_command(const Options& options);
[[nodiscard]] Answer prefill_command(const Options& options);
[[nodiscard]] Answer predict_command(const Options& options);
[[nodiscard]] Answer profile_fit_command(const Options& options);
[[nodiscard]] Answer compare_command(const Options& options);
[[nodiscard]] Answer link_import_command(const Options& options);

/// The scenario of the command: its only file, with overrides. Throws Error where none is named.
[[nodiscard]] Scenario scenario_of(const Options& options);

/// --comm and the options of the planner.
[[nodiscard]] planner::PlannerOptions planner_options_of(const Options& options);

/// The first keys of the record of a command on a scenario: RecordHeader, scenario, its shape.
[[nodiscard]] nlohmann::ordered_json record_header(const Options& options,
                                                   const Scenario& scenario);

}  // namespace longhaul::cli
