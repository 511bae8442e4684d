#include "cli/parse/parser.hpp"

#include <array>
#include <sstream>

#include "base/version.hpp"
#include "collective/overlap/overlaps.hpp"
#include "report/granularity.hpp"

namespace longhaul::cli {
namespace {

constexpr int kMostFiles = 10'000;
constexpr std::string_view kExitCodes =
    "Exit codes: 0 fine, 1 the answer is no, 2 bad input, 3 the run failed.";

constexpr std::array kExamples{
    Example{"presets", "longhaul presets"},
    Example{"check", "longhaul check benchmarks/scenarios/m70-2dc.toml"},
    Example{"schedule",
            "longhaul schedule benchmarks/scenarios/m70-2dc.toml --schedule zbv --out zbv.csv"},
    Example{"check", "longhaul check zbv.csv --scenario benchmarks/scenarios/m70-2dc.toml"},
    Example{"simulate",
            "longhaul simulate benchmarks/scenarios/m70-2dc.toml --schedule static,zbv.csv "
            "--set link.latency_ratio=2"},
    Example{"simulate",
            "longhaul simulate benchmarks/scenarios/m70-2dc.toml --schedule 1f1b,zb-h1 --out "
            "first.h5"},
    Example{"simulate",
            "longhaul simulate benchmarks/scenarios/centauri-toy.toml --schedule gpipe --overlap "
            "serial,zero3"},
    Example{"scenario", "longhaul scenario --sites 8 --gpus 16384 --out eight-sites.toml"},
    Example{"simulate", "longhaul simulate eight-sites.toml --schedule 1f1b --hierarchical"},
    Example{"ops", "longhaul ops benchmarks/scenarios/m70-2dc.toml --schedule 1f1b --rank 3"},
    Example{"layers", "longhaul layers benchmarks/scenarios/m70-2dc.toml"},
    Example{"collective",
            "longhaul collective benchmarks/scenarios/dp-2dc.toml --kind all-reduce "
            "--bytes 64MiB --algorithm all"},
    Example{"partition",
            "longhaul partition benchmarks/scenarios/centauri-toy.toml --schedule gpipe"},
    Example{"rule operation", "longhaul rule operation --comm 6ms --in-cost 2ms"},
    Example{"rule layer",
            "longhaul rule layer --w-ag 3ms --g-act 4ms --act-ag 2ms --g-w 4ms --act-rs 2ms "
            "--g-w-rs 3ms --others 1ms"},
    Example{"rule model",
            "longhaul rule model --c-ag 16ms --c-rs 24ms --c-fw 2ms --c-bw 4ms --activation 1GiB "
            "--memory 8GiB --microbatches 16"},
    Example{"plan", "longhaul plan benchmarks/scenarios/atlas-5dc.toml"},
    Example{"cluster",
            "longhaul cluster benchmarks/clusters/jobs.csv --gpus 32 --throughput "
            "benchmarks/clusters/rates.csv"},
    Example{"plan",
            "longhaul plan benchmarks/layouts/mt-nlg.toml --search parallel --gpus 2240 --tensor "
            "8 --schedule 1f1b"},
    Example{"size",
            "longhaul size --gpus 512 --days 30 --model-grid h=8192,L=60,70 --schedule 1f1b"},
    Example{"bubbles",
            "longhaul bubbles benchmarks/scenarios/atlas-fig9.toml --schedule atlas,gpipe"},
    Example{"prefill",
            "longhaul prefill benchmarks/scenarios/bubbletea.toml --schedule atlas --requests "
            "benchmarks/requests/prompts.csv --backlog 512"},
    Example{"trace summary", "longhaul trace summary first.h5"},
    Example{"trace attribution", "longhaul trace attribution first.h5 --schedule zb-h1"},
    Example{"simulate",
            "longhaul simulate benchmarks/scenarios/centauri-toy.toml --schedule gpipe --overlap "
            "zero3,best --out overlaps.h5"},
    Example{"trace overlap", "longhaul trace overlap overlaps.h5 --schedule gpipe+zero3"},
    Example{"trace export", "longhaul trace export first.h5 --schedule zb-h1 --out first.json"},
    Example{"compare", "longhaul compare first.h5 first.h5 --schedule 1f1b,zb-h1"},
    Example{"report", "longhaul report first.h5 --out report.html"},
    Example{"trace merge", "longhaul trace merge runs/first --out merged.h5"},
    Example{"watch", "longhaul watch runs/first --once"},
    Example{"predict", "longhaul predict benchmarks/rows/published-runs.csv"},
    Example{"profile needed",
            "longhaul profile needed benchmarks/scenarios/cpu-2dc.toml --out needed.csv"},
    Example{"profile show", "longhaul profile show benchmarks/profiles/tiny-f32.csv"},
    Example{"profile compare",
            "longhaul profile compare benchmarks/profiles/tiny-f32.csv "
            "benchmarks/profiles/tiny-f32.csv"},
    Example{"profile import",
            "longhaul profile import benchmarks/profiles/tiny-kineto.json --out operators.csv"},
    Example{"profile explain",
            "longhaul profile explain benchmarks/profiles/tiny-kineto.json "
            "benchmarks/profiles/tiny.toml --profile benchmarks/profiles/tiny-f32.csv"},
    Example{"profile fit", "longhaul profile fit benchmarks/rows/published-runs.csv"},
    Example{"compress", "longhaul compress gradient.f32 --method block --keep 1% --block 16"},
    Example{"tune",
            "longhaul tune benchmarks/scenarios/stella-fig14.toml --probes probes.csv --bandwidth "
            "100Mbps,1Gbps"},
    Example{"advise",
            "longhaul advise benchmarks/scenarios/dp-2dc.toml --budget-seconds 5 --out advice"},
    Example{"send",
            "longhaul send benchmarks/requests/prompts.csv --to unix:prefill.sock --rate 2"},
    Example{"link import", "longhaul link import iperf3.json --between west,east"},
};

}  // namespace

Parser::Parser(Options& options) : options_{options} {
  tool_.program("longhaul");
  tool_.version(fmt::format("longhaul {} ({})", version(), git_commit()));
  tool_.keeps_unknown();
  add_schedule();
  add_simulate();
  add_scenario();
  add_check();
  add_plan();
  add_advise();
  add_cluster();
  add_size();
  add_ops();
  add_layers();
  add_collective();
  add_partition();
  add_bubbles();
  add_prefill();
  add_rule();
  add_trace();
  add_compare();
  add_report();
  add_watch();
  add_link();
  add_predict();
  add_profile();
  add_compress();
  add_tune();
  add_command(tool_, "presets", "models and links that a scenario may name, and schedules",
              presets_command, {});
  tool_.footer(fmt::format(
      "Example: longhaul simulate benchmarks/scenarios/m70-2dc.toml --schedule static,dynamic\n"
      "{}\n"
      "`longhaul help COMMAND` tells more, `longhaul version` which commit this is.",
      kExitCodes));
  add_examples();
}

void Parser::add_examples() {
  std::map<longhaul::Arguments*, std::string> lines;
  for (const Example& example : examples()) {
    longhaul::Arguments* command = &tool_;
    std::istringstream words{std::string{example.command}};
    for (std::string word; words >> word;) command = &command->at(word);
    lines[command] += fmt::format("\n  {}", example.line);
  }
  for (const auto& [command, text] : lines)
    command->footer(fmt::format("For example:{}\n{}", text, kExitCodes));
}

longhaul::Arguments& Parser::add_command(longhaul::Arguments& parent, const std::string& name,
                                         const std::string& description, Command command,
                                         FileCount files, const std::string& what) {
  longhaul::Arguments& added = parent.command(name, description);
  added.keeps_unknown();
  if (files.most > 0) added.option("FILE", options_.files, what).values(0, kMostFiles);
  added.flag("--json", options_.json, "print JSON").takes_no_value();
  added.flag("--wide", options_.wide, "tables with all columns, however wide").takes_no_value();
  entries_[&added] = {command, files, what};
  return added;
}

void Parser::add_overrides(longhaul::Arguments& command) {
  command
      .option("--set", options_.overrides,
              "PATH=VALUE: override a value of the scenario, as in link.latency_ratio=2 (may "
              "be repeated)")
      .one_value_each();
}

void Parser::add_comm(longhaul::Arguments& command) {
  command.option("--comm", options_.comm,
                 "how communication is arranged: decoupled (default) or grouped");
}

void Parser::add_planning(longhaul::Arguments& command) {
  add_comm(command);
  report::add_planner_options(command, options_.planner);
  add_overrides(command);
}

void Parser::add_schedule() {
  longhaul::Arguments& command =
      add_command(tool_, "schedule", "make one schedule, print its statistics, write it",
                  schedule_command, {1, 1}, "scenario (.toml)");
  command.option("--schedule", options_.schedule,
                 "name of a schedule (`longhaul presets` lists them), or a .csv file");
  command.option("--out", options_.out, "write it to a file; an existing one is refused");
  report::add_granularity_option(command, options_.granularity);
  command.option("--format", options_.format,
                 "of the file: longhaul (CSV, default), pytorch (CSV), pytorch-comms (CSV with "
                 "messages and gathers of weights, which are searched), goal (LogGOPSim) or chakra "
                 "(ASTRA-sim; a file for each rank)");
  command.option("--goal", options_.goal,
                 "of --format goal: atlahs (default; a host is a datacenter) or loggopsim (the "
                 "original; a host is a rank)");
  add_planning(command);
}

void Parser::add_simulate() {
  longhaul::Arguments& command = add_command(
      tool_, "simulate",
      "predict schedules in the scenario's own times (run.time_scale and noise are not applied)",
      simulate_command, {1, 1}, "scenario (.toml)");
  command.option("--schedule", options_.schedule,
                 "comma list of names and .csv files; static, dynamic: all of these");
  command.option("--overlap", options_.overlap,
                 fmt::format("comma list of ways to run collectives of operators beside "
                             "computation, a row for each: {}",
                             fmt::join(collective::overlap_names(), ", ")));
  command.option("--allow", options_.allow,
                 "what centauri and best may decide, for tables of what each brings: comma list of "
                 "primitive, group, workload, operation, layer, model (default: all)");
  command.option("--rules", options_.rules,
                 "tiers that centauri decides by the paper's rule: comma list of operation, layer, "
                 "model");
  command.option("--out", options_.out,
                 "write the predicted timeline (HDF5); an existing file is refused");
  report::add_granularity_option(command, options_.granularity);
  command.option("--iterations", options_.iterations,
                 "also play so many iterations back to back under the links' weather (trace, "
                 "jitter, loss, outage)");
  command.option("--rows", options_.rows, "write what ranks do in these, without a barrier (CSV)");
  command
      .flag("--bounds", options_.bounds,
            "also say how far each schedule is above a time that none of its class undercuts "
            "(best and the solver's always do)")
      .takes_no_value();
  command
      .flag("--hierarchical", options_.hierarchical,
            "play ranks part by part, equal replicas by one list of ops: up to 2^20 ranks under "
            "static schedules, where none share a link")
      .takes_no_value();
  add_planning(command);
}

void Parser::add_check() {
  longhaul::Arguments& command = add_command(
      tool_, "check", "is a scenario, schedule or trace right, and does it fit?", check_command,
      {1, kMostFiles}, "scenario (.toml), schedule (.csv), trace (.h5) or run directory");
  command.option("--scenario", options_.scenario,
                 "hold schedules against its shape, budget and capacity");
  command.option("--schedule", options_.schedule,
                 "schedule whose activations must fit a scenario's devices (default: 1f1b)");
  report::add_planner_options(command, options_.planner);
  add_overrides(command);
}

void Parser::add_plan() {
  longhaul::Arguments& command =
      add_command(tool_, "plan", "which datacenters and how many GPUs to train with, at what cost",
                  plan_command, {1, 1}, "scenario (.toml), stages placed or not");
  command.option(
      "--schedule", options_.schedule,
      "comma list of names: of each plan the fastest counts (default: seven; atlas alone is "
      "the paper's)");
  add_plan_options(command, options_.plan);
  add_space_options(command, options_.layout);
  add_run_options(command, options_.layout);
  add_overrides(command);
}

void Parser::add_cluster() {
  longhaul::Arguments& command =
      add_command(tool_, "cluster", "play jobs with deadlines that share the GPUs of one cluster",
                  cluster_command, {1, 1}, "list of jobs (.csv)");
  add_cluster_options(command, options_.cluster);
  add_rate_options(command, options_.layout);
}

void Parser::add_size() {
  longhaul::Arguments& command = add_command(
      tool_, "size", "the largest model that GPUs can train in a time", size_command, {0, 0});
  add_size_options(command, options_.layout.gpus, options_.size);
  command.option("--schedule", options_.schedule, "comma list of static orders (default: all six)");
  add_space_options(command, options_.layout);
}

void Parser::add_ops() {
  longhaul::Arguments& command =
      add_command(tool_, "ops", "print what each rank does under a schedule", ops_command, {1, 1},
                  "scenario (.toml)");
  command.option("--schedule", options_.schedule,
                 "name of a schedule (`longhaul presets` lists them), or a .csv file");
  command.option("--rank", options_.rank, "only this rank");
  command.option(
      "--graph", options_.graph,
      "write the operators of an iteration as a graph (.dot); an existing file is refused");
  report::add_granularity_option(command, options_.granularity);
  add_planning(command);
}

void Parser::add_layers() {
  add_planning(add_command(tool_, "layers",
                           "divide a model's layers over its stages: even, balanced and refined",
                           layers_command, {1, 1}, "scenario (.toml)"));
}

void Parser::add_collective() {
  longhaul::Arguments& command = add_command(
      tool_, "collective", "predict a collective among ranks of a scenario, by algorithm",
      collective_command, {1, 1}, "scenario (.toml)");
  report::add_collective_options(command, options_.collective);
  command
      .option("--ties", options_.ties,
              "simulate it so often with ties broken at random, and show the range")
      .within(0, 100'000);
  add_overrides(command);
}

void Parser::add_partition() {
  longhaul::Arguments& command = add_command(
      tool_, "partition", "how an iteration's collectives can be partitioned, and at what cost",
      partition_command, {1, 1}, "scenario (.toml)");
  command.option("--schedule", options_.schedule,
                 "name of a schedule (`longhaul presets` lists them), or a .csv file");
  add_planning(command);
}

void Parser::add_bubbles() {
  longhaul::Arguments& command =
      add_command(tool_, "bubbles", "when the GPUs of training are idle, bubble by bubble",
                  bubbles_command, {0, 1}, "scenario (.toml)");
  command.option("--schedule", options_.schedule,
                 "comma list of names and .csv files; static, dynamic: all of these");
  command.option("--trace", options_.trace,
                 "a trace or a run's directory instead: measured, and how far the prediction was "
                 "off");
  add_swap_options(command, options_.prefill);
  add_planning(command);
}

void Parser::add_prefill() {
  longhaul::Arguments& command =
      add_command(tool_, "prefill", "place prompts in the bubbles of training (BubbleTea)",
                  prefill_command, {1, 1}, "scenario (.toml)");
  command.option("--schedule", options_.schedule,
                 "comma list of names and .csv files; static, dynamic: all of these");
  add_prefill_options(command, options_.prefill);
  add_planning(command);
  add_send_options(add_command(tool_, "send", "requests of a file to bench_prefill --listen",
                               send_command, {1, 1}, "requests: Azure's trace (.csv), JSON lines"),
                   options_.prefill);
}

void Parser::add_rule() {
  longhaul::Arguments& rule =
      tool_.command("rule", "Centauri's rules on given numbers: operation, layer, model");
  rule.keeps_unknown();
  add_rule_options(
      add_command(rule, "operation", "in which parts a collective is cut (algorithm 1)",
                  rule_operation_command, {}),
      options_.rule.operation);
  add_rule_options(add_command(rule, "layer", "which gradients of a layer come first (equation 1)",
                               rule_layer_command, {}),
                   options_.rule.layer);
  add_rule_options(
      add_command(rule, "model", "how many microbatches are launched together (equation 2)",
                  rule_model_command, {}),
      options_.rule.model);
}

void Parser::add_link() {
  longhaul::Arguments& link = tool_.command("link", "links of your own sites: import");
  link.keeps_unknown();
  longhaul::Arguments& import =
      add_command(link, "import", "a [[link]] from what iperf3 -J, OSU or nccl-tests measured",
                  link_import_command, {1, kMostFiles}, "result of a benchmark");
  import.option("--between", options_.link.between, "A,B: both directions between them");
  import.option("--from", options_.link.from, "one direction, with --to");
  import.option("--to", options_.link.to, "one direction, with --from");
}

void Parser::add_compress() {
  longhaul::Arguments& command = add_command(
      tool_, "compress", "keep the largest numbers of a gradient, as messages carry them",
      compress_command, {1, 1}, "gradient (.f32: numbers of 32 bits)");
  add_compress_options(command, options_.compress);
  command.option("--out", options_.out, "write the payload; an existing file is refused");
}

void Parser::add_tune() {
  longhaul::Arguments& command = add_command(
      tool_, "tune", "batches and compression rate that reach a loss soonest at these bandwidths",
      tune_command, {1, 1}, "scenario (.toml)");
  add_tune_options(command, options_.tune);
  add_overrides(command);
}

void Parser::add_predict() {
  longhaul::Arguments& command =
      add_command(tool_, "predict", "the iteration time of training runs, with an interval",
                  predict_command, {1, 1}, "table of runs (.csv)");
  command.option("--calibration", options_.predict.calibration,
                 "what `longhaul profile fit` wrote; none (default): nothing was fitted to "
                 "iteration times");
  add_extrapolate(command);
}

std::span<const Example> examples() { return kExamples; }

}  // namespace longhaul::cli
