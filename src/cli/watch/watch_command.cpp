#include <algorithm>
#include <cmath>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/unit_text.hpp"
#include "cli/command/commands.hpp"
#include "report/host_load.hpp"
#include "report/record_file.hpp"
#include "report/tables.hpp"
#include "report/watched_run.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using report::RunState;
using report::WatchedRun;
using report::WatchedSeries;

ordered_json rounded_or_null(const std::optional<double>& ns) {
  return ns ? ordered_json(std::llround(*ns)) : ordered_json(nullptr);
}

template <typename Value>
ordered_json value_or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json series_json(const WatchedSeries& series) {
  const SampleSummary summary = summarize(series.times_ns);
  const auto& interval = summary.median_interval;
  const auto if_any = [&](double ns) {
    return summary.n > 0 ? ordered_json(std::llround(ns)) : ordered_json(nullptr);
  };
  return {{"name", series.name},
          {"done", series.done},
          {"total", series.total},
          {"n", summary.n},
          {"measured_median_ns", if_any(summary.median)},
          {"measured_median_low_ns",
           interval ? ordered_json(std::llround(interval->low)) : ordered_json(nullptr)},
          {"measured_median_high_ns",
           interval ? ordered_json(std::llround(interval->high)) : ordered_json(nullptr)},
          {"measured_min_ns", if_any(summary.min)},
          {"measured_p95_ns", if_any(summary.p95)},
          {"mean_ns", rounded_or_null(series.mean_ns)},
          {"predicted_ns", rounded_or_null(series.predicted_ns)},
          {"difference_percent", value_or_null(series.difference_percent())},
          {"loss", value_or_null(series.loss)}};
}

std::optional<std::int64_t> ns_of(const std::optional<std::chrono::milliseconds>& time) {
  if (!time) return std::nullopt;
  return Duration{*time}.count();
}

ordered_json watch_json(const WatchedRun& run, const Options& options) {
  ordered_json json =
      report::record_header({.creator = "longhaul", .command_line = options.command_line});
  json["run"] = options.files.front();
  json["state"] = to_string(run.state);
  json["watched_benchmark"] = run.benchmark;
  json["unit"] = run.unit;
  json["series"] = ordered_json::array();
  for (const WatchedSeries& series : run.series) json["series"].push_back(series_json(series));
  json["series_total"] = run.series_total;
  json["ends_by_rule"] = run.ends_by_rule;
  json["load"] = run.load;
  json["cores"] = run.cores;
  json["since_last_ns"] = value_or_null(ns_of(run.since_last));
  json["left_ns"] = value_or_null(run.state == RunState::complete ? std::optional<std::int64_t>{0}
                                                                  : ns_of(run.left));
  return json;
}

std::string progress_of(const WatchedRun& run) {
  int done = 0, total = 0;
  for (const WatchedSeries& series : run.series) done += series.done, total += series.total;
  std::string text = fmt::format("{} of {}{} {}s", done, run.ends_by_rule ? "at most " : "", total,
                                 run.unit == "stretch" ? "stretche" : run.unit);
  if (std::cmp_less(run.series.size(), run.series_total))
    text += fmt::format(", series {} of {}", run.series.size(), run.series_total);
  return text;
}

std::string state_line(const WatchedRun& run, const Options& options) {
  const std::string& name = options.files.front();
  std::string text = fmt::format("{}: {}, {}", name, run.benchmark, to_string(run.state));
  if (run.state != RunState::complete) text += "; " + progress_of(run);
  if (run.state == RunState::running && run.left)
    text += fmt::format(", {} {} left", run.ends_by_rule ? "at most" : "about",
                        to_text(std::chrono::ceil<std::chrono::seconds>(*run.left)));
  if (run.cores > 0 && run.load > 0)
    text += fmt::format("; {}{}", report::load_text({run.load, run.cores, 0}),
                        run.load > run.cores ? " (doubtful)" : "");
  if (run.state != RunState::complete && run.since_last)
    text += fmt::format("; the last {} ended {} ago", run.unit, to_text(*run.since_last));
  text += "\n";
  if (run.state == RunState::stale)
    text += fmt::format("No process works on it (it was killed, or told to end). {}\n",
                        run.benchmark == "bench_prefill"
                            ? "Finished stretches: longhaul trace merge " + name
                            : "The same command with --resume goes on.");
  return text;
}

std::string watched_table(const WatchedRun& run, TableWidth width) {
  double largest = 0;
  bool has_loss = false, has_means = false;
  for (const WatchedSeries& series : run.series) {
    largest = std::max({largest, series.time_ns().value_or(0), series.predicted_ns.value_or(0)});
    has_loss = has_loss || series.loss;
    has_means = has_means || series.mean_ns;
  }
  const report::TimeScale scale{largest};
  std::vector<Table::Column> columns{{run.unit == "iteration" ? "schedule" : "series", Align::left},
                                     {fmt::format("predicted [{}]", scale.unit())},
                                     {has_means ? "mean" : "median"},
                                     {"95% CI of median"},
                                     {"min", Align::right, 1},
                                     {"p95", Align::right, 1},
                                     {"done"},
                                     {"diff [%]"}};
  if (has_loss) columns.push_back({"loss"});
  Table table{columns};
  for (const WatchedSeries& series : run.series) {
    const SampleSummary summary = summarize(series.times_ns);
    const auto or_dash = [&](const std::optional<double>& ns) {
      return ns ? scale.text(*ns) : std::string{"-"};
    };
    const bool any = summary.n > 0;
    const auto difference = series.difference_percent();
    std::vector<std::string> cells{series.name,
                                   or_dash(series.predicted_ns),
                                   or_dash(series.time_ns()),
                                   any ? report::interval_text(summary, scale) : "-",
                                   any ? scale.text(summary.min) : "-",
                                   any ? scale.text(summary.p95) : "-",
                                   series.total > 0
                                       ? fmt::format("{}/{}", series.done, series.total)
                                       : std::to_string(series.done),
                                   difference ? fmt::format("{:+.2f}", *difference) : "-"};
    if (has_loss) cells.push_back(series.loss ? fmt::format("{:.3f}", *series.loss) : "-");
    table.add_row(cells);
  }
  return table.text(width);
}

std::string watched_text(const WatchedRun& run, const Options& options) {
  std::string text = state_line(run, options);
  if (!run.series.empty()) text += "\n" + watched_table(run, table_width(options));
  return text;
}

/// Puts each text in the place of the one before, until the run goes on no more.
WatchedRun watch(WatchedRun run, Duration every, const Options& options) {
  while (run.state == RunState::running) {
    const std::string text = watched_text(run, options);
    fmt::print("{}", text);
    std::fflush(stdout);
    std::this_thread::sleep_for(every);
    fmt::print("\x1B[{}F\x1B[J", std::ranges::count(text, '\n'));
    run = report::watched_run(options.files.front());
  }
  return run;
}

}  // namespace

Answer watch_command(const Options& options) {
  const Duration every =
      options.watch.every.empty() ? std::chrono::seconds{1} : parse_duration(options.watch.every);
  if (every < std::chrono::milliseconds{100})
    fail("--every {}: at least 100ms (each look reads the journal). Give more.",
         options.watch.every);
  WatchedRun run = report::watched_run(options.files.front());
  const bool is_live = !options.watch.once && !options.json && isatty(STDOUT_FILENO) == 1;
  if (is_live) run = watch(std::move(run), every, options);
  const ExitCode code = run.state == RunState::stale ? ExitCode::answer_is_no : ExitCode::fine;
  return {options.json ? report::json_text(watch_json(run, options)) : watched_text(run, options),
          code};
}

}  // namespace longhaul::cli
