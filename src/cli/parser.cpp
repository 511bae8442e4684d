#include "cli/parser.hpp"

#include "base/version.hpp"
#include "cli/examples.hpp"

namespace longhaul {
namespace {

constexpr int kMostFiles = 10'000;

}  // namespace

Parser::Parser(Options& options) : options_{options} {
  app_.name("longhaul");
  app_.set_version_flag("--version", fmt::format("longhaul {} ({})", version(), git_commit()));
  app_.require_subcommand(0, 1);
  app_.allow_extras();
  add_schedule();
  add_simulate();
  add_check();
  add_plan();
  add_ops();
  add_layers();
  add_trace();
  add_compare();
  add_link();
  add_command(app_, "presets", "models and links that a scenario may name, and schedules",
              presets_command, {});
  app_.footer(
      "Example: longhaul simulate benchmarks/scenarios/m70-2dc.toml --schedule static,dynamic\n"
      "Exit codes: 0 fine, 1 the answer is no, 2 bad input, 3 the run failed.\n"
      "`longhaul COMMAND --help` tells more.");
  add_examples();
}

void Parser::add_examples() {
  std::map<CLI::App*, std::string> lines;
  for (const Example& example : examples()) {
    CLI::App* command = &app_;
    for (const std::string& word : CLI::detail::split(std::string{example.command}, ' '))
      command = command->get_subcommand(word);
    lines[command] += fmt::format("\n  {}", example.line);
  }
  for (const auto& [command, text] : lines) command->footer("For example:" + text);
}

CLI::App* Parser::add_command(CLI::App& parent, const std::string& name,
                              const std::string& description, Command command, FileCount files,
                              const std::string& what) {
  CLI::App* added = parent.add_subcommand(name, description);
  added->allow_extras();
  if (files.most > 0) added->add_option("FILE", options_.files, what)->expected(0, kMostFiles);
  added->add_flag("--json", options_.json, "print JSON")->disable_flag_override();
  entries_[added] = {command, files, what};
  return added;
}

void Parser::add_overrides(CLI::App* command) {
  command
      ->add_option("--set", options_.overrides,
                   "PATH=VALUE: override a value of the scenario, as in link.latency_ratio=2 (may "
                   "be repeated)")
      ->allow_extra_args(false);
}

void Parser::add_comm(CLI::App* command) {
  command->add_option("--comm", options_.comm,
                      "how communication is arranged: decoupled (default) or grouped");
}

void Parser::add_planning(CLI::App* command) {
  add_comm(command);
  add_planner_options(*command, options_.planner);
  add_overrides(command);
}

void Parser::add_schedule() {
  CLI::App* command =
      add_command(app_, "schedule", "make one schedule, print its statistics, write it",
                  schedule_command, {1, 1}, "scenario (.toml)");
  command->add_option("--schedule", options_.schedule,
                      "name of a schedule (`longhaul presets` lists them), or a .csv file");
  command->add_option("--out", options_.out, "write it to a file; an existing one is refused");
  command->add_option("--format", options_.format,
                      "of the file: longhaul (CSV, default), pytorch (CSV), goal (LogGOPSim) or "
                      "chakra (ASTRA-sim; a file for each rank)");
  add_planning(command);
}

void Parser::add_simulate() {
  CLI::App* command = add_command(
      app_, "simulate",
      "predict schedules in the scenario's own times (run.time_scale and noise are not applied)",
      simulate_command, {1, 1}, "scenario (.toml)");
  command->add_option("--schedule", options_.schedule,
                      "comma list of names and .csv files; static, dynamic: all of these");
  command->add_option("--out", options_.out,
                      "write the predicted timeline (HDF5); an existing file is refused");
  command->add_option("--iterations", options_.iterations,
                      "also play so many iterations back to back under the links' weather (trace, "
                      "jitter, loss, outage)");
  add_planning(command);
}

void Parser::add_check() {
  CLI::App* command = add_command(
      app_, "check", "is a scenario, schedule or trace right, and does it fit?", check_command,
      {1, kMostFiles}, "scenario (.toml), schedule (.csv), trace (.h5) or run directory");
  command->add_option("--scenario", options_.scenario,
                      "hold schedules against its shape, budget and capacity");
  command->add_option("--schedule", options_.schedule,
                      "schedule whose activations must fit a scenario's devices (default: 1f1b)");
  add_planner_options(*command, options_.planner);
  add_overrides(command);
}

void Parser::add_plan() {
  CLI::App* command =
      add_command(app_, "plan", "which datacenters and how many GPUs to train with, at what cost",
                  plan_command, {1, 1}, "scenario (.toml), stages placed or not");
  command->add_option("--schedule", options_.schedule,
                      "name of a schedule (default: atlas); a comma list for --search exact");
  add_plan_options(*command, options_.plan);
  add_overrides(command);
}

void Parser::add_ops() {
  CLI::App* command = add_command(app_, "ops", "print what each rank does under a schedule",
                                  ops_command, {1, 1}, "scenario (.toml)");
  command->add_option("--schedule", options_.schedule,
                      "name of a schedule (`longhaul presets` lists them), or a .csv file");
  command->add_option("--rank", options_.rank, "only this rank");
  add_planning(command);
}

void Parser::add_layers() {
  add_planning(add_command(app_, "layers",
                           "divide a model's layers over its stages: even, balanced and refined",
                           layers_command, {1, 1}, "scenario (.toml)"));
}

void Parser::add_trace() {
  CLI::App* trace =
      app_.add_subcommand("trace", "read a trace: summary, attribution, export, merge");
  trace->require_subcommand(0, 1);
  trace->allow_extras();
  const std::string source = "trace (.h5) or run directory";
  CLI::App* summary =
      add_command(*trace, "summary", "measured and predicted times of each schedule",
                  trace_summary_command, {1, 1}, source);
  summary->add_option("--schedule", options_.schedule, "only this one");
  CLI::App* attribution = add_command(*trace, "attribution",
                                      "where idle time went; the critical path and its crossings",
                                      trace_attribution_command, {1, 1}, source);
  attribution->add_option("--schedule", options_.schedule, "only this one");
  attribution->add_option("--iteration", options_.iteration,
                          "critical path of this iteration (default: the one nearest the median)");
  CLI::App* exported =
      add_command(*trace, "export", "for Perfetto (chrome) or spreadsheets (csv, memory)",
                  trace_export_command, {1, 1}, source);
  exported->add_option("--format", options_.format,
                       "chrome (default), csv, or memory: activations over time");
  exported->add_option("--out", options_.out, "file to write; an existing one is refused");
  exported->add_option("--schedule", options_.schedule, "only this one");
  exported->add_option("--iteration", options_.iteration, "only this one");
  CLI::App* merge =
      add_command(*trace, "merge", "one trace of a run's finished iterations, killed or not",
                  trace_merge_command, {1, 1}, "run directory");
  merge->add_option("--out", options_.out, "trace to write; an existing file is refused");
}

void Parser::add_compare() {
  CLI::App* command = add_command(
      app_, "compare", "is B faster, slower, or not distinguishable from A?", compare_command,
      {2, 2}, "run directory, record (.json) or trace (.h5): A, then B");
  command->add_option("--schedule", options_.schedule,
                      "only this one; S,T: S of A against T of B (default: all that both have)");
  command->add_option("--expect", options_.expect,
                      "exit 1 unless B is faster, slower, not-faster, not-slower or "
                      "not-distinguishable, in every comparison");
}

void Parser::add_link() {
  CLI::App* link = app_.add_subcommand("link", "links of your own sites: import");
  link->require_subcommand(0, 1);
  link->allow_extras();
  CLI::App* import =
      add_command(*link, "import", "a [[link]] from what iperf3 -J, OSU or nccl-tests measured",
                  link_import_command, {1, kMostFiles}, "result of a benchmark");
  import->add_option("--between", options_.link.between, "A,B: both directions between them");
  import->add_option("--from", options_.link.from, "one direction, with --to");
  import->add_option("--to", options_.link.to, "one direction, with --from");
}

}  // namespace longhaul
