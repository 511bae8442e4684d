#include "cli/parse/parser.hpp"

namespace longhaul::cli {

void Parser::add_advise() {
  longhaul::Arguments& command = add_command(
      tool_, "advise", "how to train here: the fastest plan, and what each idea brings",
      advise_command, {1, 1}, "scenario (.toml), divided into stages or not, placed or not");
  command.option(
      "--objective", options_.advise.objective,
      "time (default); cost: dollars of an iteration, where layouts or places are open; value: "
      "less what prompts earn, with [prefill]");
  command.option("--requests", options_.prefill.requests,
                 "with --objective value: prompts, a trace as of `prefill`");
  command.option("--backlog", options_.prefill.backlog, "so many of them always wait");
  command.option("--prefill-price", options_.prefill.price, "$ of 10^6 prompt tokens");
  command.option("--allow", options_.advise.allow,
                 "what may change the result: exact (default): nothing; stale: also older weights; "
                 "lossy: also compression and local steps");
  command.option("--curves", options_.tune.curves,
                 "with --allow stale or lossy: how methods learn, a table as of `tune --family`");
  command.option("--target", options_.tune.target,
                 "loss=X that plans are to reach soonest then (default: [train] target)");
  command.option("--tokens", options_.advise.tokens, "of the whole training: 270e9");
  command.option("--deadline", options_.advise.deadline,
                 "plans that take longer are none: 30d, 12h; needs --tokens");
  command.option("--mtbf", options_.advise.mtbf,
                 "mean time between failures of one GPU: 50000h (default: none fails)");
  command.option("--checkpoint", options_.advise.checkpoint,
                 "time in which a checkpoint is written, with --mtbf");
  command.option("--without", options_.advise.without, "datacenter that leaves (may be repeated)")
      .one_value_each();
  command.option("--budget-seconds", options_.advise.budget,
                 "wall-clock time of its searches together, about (default: 60)");
  command.option("--search-moves", options_.advise.moves,
                 "moves of each search instead, so that the answer is the same on any machine");
  command.option("--search-threads", options_.advise.threads, "default: all cores");
  command.option(
      "--out", options_.out,
      "directory for the schedule of each plan and the answer (advice.json); an existing "
      "one is refused");
  add_overrides(command);
}

void Parser::add_scenario() {
  longhaul::Arguments& command = add_command(
      tool_, "scenario", "write a scenario of many sites, drawn from a table of regions",
      scenario_command, {0, 0});
  add_scenario_options(command, options_.drawn);
  command.option("--out", options_.out, "write it to a file; an existing one is refused");
}

void Parser::add_trace() {
  longhaul::Arguments& trace =
      tool_.command("trace", "read a trace: summary, attribution, overlap, export, merge");
  trace.keeps_unknown();
  const std::string source = "trace (.h5) or run directory";
  longhaul::Arguments& summary =
      add_command(trace, "summary", "measured and predicted times of each schedule",
                  trace_summary_command, {1, 1}, source);
  summary.option("--schedule", options_.schedule, "only this one");
  longhaul::Arguments& attribution =
      add_command(trace, "attribution", "where idle time went; the critical path and its crossings",
                  trace_attribution_command, {1, 1}, source);
  attribution.option("--schedule", options_.schedule, "only this one");
  attribution.option("--iteration", options_.iteration,
                     "critical path of this iteration (default: the one nearest the median)");
  longhaul::Arguments& overlap =
      add_command(trace, "overlap", "what each collective was hidden beside, and why not",
                  trace_overlap_command, {1, 1}, source);
  overlap.option("--schedule", options_.schedule, "only this one, as gpipe+zero3");
  overlap.option("--rank", options_.rank, "of this rank (default: the one that waits most)");
  overlap.option("--iteration", options_.iteration,
                 "that was measured (default: the one nearest the median)");
  longhaul::Arguments& exported =
      add_command(trace, "export", "for Perfetto (chrome) or spreadsheets (csv, memory)",
                  trace_export_command, {1, 1}, source);
  exported.option("--format", options_.format,
                  "chrome (default), csv, or memory: activations over time");
  exported.option("--out", options_.out, "file to write; an existing one is refused");
  exported.option("--granularity", options_.granularity,
                  "block or operator, of the scenario in the trace (default: as traced)");
  exported.option("--schedule", options_.schedule, "only this one");
  exported.option("--iteration", options_.iteration, "only this one");
  longhaul::Arguments& merge =
      add_command(trace, "merge", "one trace of a run's finished iterations, killed or not",
                  trace_merge_command, {1, 1}, "run directory");
  merge.option("--out", options_.out, "trace to write; an existing file is refused");
}

void Parser::add_compare() {
  longhaul::Arguments& command = add_command(
      tool_, "compare", "is B faster, slower, or not distinguishable from A?", compare_command,
      {1, 2},
      "run directory, record (.json) or trace (.h5): A, then B; several runs of each: A1,A2:B1,B2");
  command.option("--schedule", options_.schedule,
                 "only this one; S,T: S of A against T of B (default: all that both have)");
  command.option("--at-least", options_.at_least,
                 "faster or slower by more than this alone: 1% (default: by anything)");
  command.option("--expect", options_.expect,
                 "exit 1 unless B is faster, slower, not-faster, not-slower or "
                 "not-distinguishable, in every comparison");
}

void Parser::add_report() {
  longhaul::Arguments& command =
      add_command(tool_, "report", "a page to look at: the answer in words, timelines, tables",
                  report_command, {1, 8}, "run directory or trace (.h5); several: a comparison");
  command.option("--out", options_.out, "HTML file to write; an existing one is refused");
  command.option("--schedule", options_.schedule, "only this one");
}

void Parser::add_watch() {
  longhaul::Arguments& command =
      add_command(tool_, "watch", "a run while it goes on: how far it is, and its numbers so far",
                  watch_command, {1, 1}, "run directory (--out of a benchmark)");
  command.flag("--once", options_.watch.once, "print what there is now, and end").takes_no_value();
  command.option("--every", options_.watch.every, "look again after so long (default: 1s)");
}

}  // namespace longhaul::cli
