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

/// The options of `longhaul plan --search parallel`, `size` and the tables of `cluster`, as typed;
/// empty: the default.
struct LayoutArguments {
  std::string gpus, tensor, data, pipeline, micro_batch, chunks, recompute, sharding;
  std::string machine, calibration, memory, price;
  std::string deadline, tokens, iterations, emit, keep;
  std::string plans, rates_out;  ///< of `cluster`
  bool exhaustive = false, extrapolate = false;
};

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
/// Those that say which layouts are looked at, and on which machine, but for --gpus.
void add_space_options(Arguments& command, LayoutArguments& arguments);
/// --gpus, --price, --deadline, --tokens, --iterations, --exhaustive, --emit and --keep.
void add_run_options(Arguments& command, LayoutArguments& arguments);

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
/// Those that make a table of rates out of layouts.
void add_rate_options(Arguments& command, LayoutArguments& arguments);

/// The options of `longhaul prefill`, as typed; empty: the default.
struct PrefillArguments {
  std::string requests, policy, placements_out, schedule_out;
  std::string rate, copies, window, poisson, backlog, patience;
  std::string kv, route, regions, signals, overrun, objective, price;
  std::string to;             ///< of `send`
  std::string weights, pcie;  ///< of `bubbles`
  bool stream = false;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_prefill_options(Arguments& command, PrefillArguments& arguments);
void add_send_options(Arguments& command, PrefillArguments& arguments);
void add_swap_options(Arguments& command, PrefillArguments& arguments);

/// The options of `longhaul compress`, as typed; empty: the default.
struct CompressArguments {
  std::string method, keep, block, values, index, seed;
  std::string residual, residual_out, state, decode;  ///< files
  bool list = false;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_compress_options(Arguments& command, CompressArguments& arguments);

/// The options of `longhaul size` beside those of the layouts, as typed; empty: the default.
struct SizeArguments {
  std::string days, model_grid, global_batch, loss;
};

/// Declares --gpus and the options of `arguments`, which must outlive `command`.
void add_size_options(Arguments& command, std::string& gpus, SizeArguments& arguments);

/// The options of `longhaul tune`, as typed; empty: the default.
struct TuneArguments {
  std::string probes, bandwidth, lambda;
  std::string family, curves, target;  ///< of --family: methods instead of batches
  bool between = false;                ///< also those between its curves
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_tune_options(Arguments& command, TuneArguments& arguments);

/// The options of `scenario`, as typed; empty: the default.
struct ScenarioArguments {
  std::string sites, gpus, regions, model, tensor, stages, microbatches, seed, tour, uplink;
};

/// Declares the options of `arguments`, which must outlive `command`.
void add_scenario_options(Arguments& command, ScenarioArguments& arguments);

/// The options of `advise`, as typed; empty: the default.
struct AdviseArguments {
  std::string budget, moves, threads;
  std::string objective, deadline, tokens, mtbf, checkpoint;
  std::string allow;                 ///< with `curves` and `target` of TuneArguments
  std::vector<std::string> without;  ///< datacenters
};

/// The options of `predict` and `profile fit`.
struct PredictArguments {
  std::string calibration;  ///< a file, or "none"; empty: none
  bool extrapolate = false;
};

/// The options of `watch`.
struct WatchArguments {
  bool once = false;
  std::string every;  ///< "1s", the default
};

/// The options of `profile needed`, `import` and `explain`; empty: not given.
struct ProfileArguments {
  std::string profile;  ///< whose times `needed` and `explain` take
  std::string tasks;    ///< a file that `import` writes
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
  std::string trace;        ///< of `bubbles`: measured ones of a trace or a run's directory
  std::string allow;        ///< of `simulate --overlap`: what searches may do; empty: all
  std::string rules;        ///< likewise: tiers that the paper's rules decide
  std::string granularity;  ///< empty: block; of `trace export`: as in the trace
  std::string format;
  std::string out;
  std::string scenario;  ///< of `check` for a schedule
  LinkArguments link;
  RuleArguments rule;
  ClusterArguments cluster;
  PredictArguments predict;
  WatchArguments watch;
  ProfileArguments profile;
  PrefillArguments prefill;
  CompressArguments compress;
  TuneArguments tune;
  AdviseArguments advise;
  ScenarioArguments drawn;  ///< of `scenario`
  std::string expect;       ///< of `compare`
  std::string at_least;     ///< of `compare`: "1%"
  std::optional<int> iteration;
  std::optional<int> iterations;  ///< of `simulate`: played under weather
  std::string rows;               ///< of `simulate`: a file for a line an op of the stream
  std::optional<int> rank;
  bool bounds = false;        ///< of `simulate`: computes them for every schedule
  bool hierarchical = false;  ///< likewise: ranks are played part by part
  bool json = false;
  bool wide = false;         ///< tables with all their columns
  std::string command_line;  ///< as typed, for records
  std::string graph;         ///< of `ops`: a file for Graphviz
  std::string goal;          ///< of `schedule`: the simulator of --format goal
  LayoutArguments layout;    ///< of `plan`, `size` and `cluster`
  SizeArguments size;
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
/// With --hierarchical: static schedules on up to 2^20 ranks, part by part. Throws Error where
/// ranks share links, and on options that need the plan of all ranks.
[[nodiscard]] Answer simulate_hierarchy(const Options& options);
[[nodiscard]] Answer scenario_command(const Options& options);
[[nodiscard]] Answer check_command(const Options& options);
[[nodiscard]] Answer plan_command(const Options& options);
[[nodiscard]] Answer advise_command(const Options& options);
[[nodiscard]] Answer ops_command(const Options& options);
[[nodiscard]] Answer layers_command(const Options& options);
[[nodiscard]] Answer presets_command(const Options& options);
[[nodiscard]] Answer trace_summary_command(const Options& options);
[[nodiscard]] Answer trace_attribution_command(const Options& options);
[[nodiscard]] Answer trace_export_command(const Options& options);
[[nodiscard]] Answer trace_overlap_command(const Options& options);
[[nodiscard]] Answer trace_merge_command(const Options& options);
[[nodiscard]] Answer collective_command(const Options& options);
[[nodiscard]] Answer partition_command(const Options& options);
[[nodiscard]] Answer rule_operation_command(const Options& options);
[[nodiscard]] Answer rule_layer_command(const Options& options);
[[nodiscard]] Answer rule_model_command(const Options& options);
[[nodiscard]] Answer cluster_command(const Options& options);
[[nodiscard]] Answer size_command(const Options& options);
[[nodiscard]] Answer bubbles_command(const Options& options);
[[nodiscard]] Answer prefill_command(const Options& options);
[[nodiscard]] Answer send_command(const Options& options);
[[nodiscard]] Answer compress_command(const Options& options);
[[nodiscard]] Answer tune_command(const Options& options);
[[nodiscard]] Answer predict_command(const Options& options);
[[nodiscard]] Answer profile_fit_command(const Options& options);
[[nodiscard]] Answer profile_needed_command(const Options& options);
[[nodiscard]] Answer profile_show_command(const Options& options);
[[nodiscard]] Answer profile_compare_command(const Options& options);
[[nodiscard]] Answer profile_import_command(const Options& options);
[[nodiscard]] Answer profile_explain_command(const Options& options);
[[nodiscard]] Answer compare_command(const Options& options);
[[nodiscard]] Answer report_command(const Options& options);
/// On a terminal it prints what it sees until the run ends, and reads no rows: in this process.
[[nodiscard]] Answer watch_command(const Options& options);
[[nodiscard]] Answer link_import_command(const Options& options);

/// The scenario of the command: its only file, with overrides. Throws Error where none is named.
[[nodiscard]] Scenario scenario_of(const Options& options);

/// --comm and the options of the planner.
[[nodiscard]] planner::PlannerOptions planner_options_of(const Options& options);

/// The first keys of the record of a command on a scenario: RecordHeader, scenario, its shape.
[[nodiscard]] nlohmann::ordered_json record_header(const Options& options,
                                                   const Scenario& scenario);

}  // namespace longhaul::cli
