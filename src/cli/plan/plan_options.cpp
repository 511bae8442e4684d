#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/suggest.hpp"
#include "base/unit_text.hpp"
#include "cli/plan/plan.hpp"
#include "planner/make_schedule.hpp"
#include "schedule/cells.hpp"

namespace longhaul::cli {
namespace {

constexpr int kMostCells = 1'000'000;
constexpr int kMostThreads = 4096;

double tolerance_of(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end || !(value >= 1e-6) || !(value <= 1))
    fail("--tolerance: \"{}\" is no number from 1e-6 to 1 (of the bandwidth). Give 0.001.", text);
  return value;
}

bool is_exact(const std::string& word) {
  const std::vector<std::string> known{"algorithm1", "exact", "parallel"};
  if (std::ranges::find(known, word) == known.end())
    fail("--search: there is no \"{}\". {}", word, suggestion(word, known));
  return word == "exact";
}

/// Options that would have no effect.
void check_use(const PlanArguments& arguments, const PlanOptions& options) {
  const bool breaks_even = !arguments.break_even.empty();
  const auto need = [](const char* option, const std::string& given, bool used, const char* with) {
    if (!given.empty() && !used)
      fail("{}: it has no effect here (it goes with {}). Leave it out, or add that.", option, with);
  };
  need("--limit", arguments.limit, options.exact, "--search exact");
  need("--objective", arguments.objective, options.exact || !arguments.sweeps.empty(),
       "--search exact or --sweep");
  need("--latencies", arguments.latencies, breaks_even, "--break-even");
  need("--tolerance", arguments.tolerance, breaks_even, "--break-even");
  if (breaks_even && options.exact)
    fail("--break-even: it goes by algorithm 1 alone. Leave --search exact out.");
  if (options.exact && !arguments.order.empty())
    fail(
        "--order: --search exact looks through all orders (no first one is asked for). Leave it "
        "out.");
}

/// The schedules of the list; none that takes a search or a file of its own.
std::vector<planner::ScheduleRequest> schedules_of(std::string_view list) {
  std::vector<planner::ScheduleRequest> requests = planner::parse_schedules(list);
  for (const planner::ScheduleRequest& request : requests) {
    if (request.is_file())
      fail("--schedule: {} is a file (each plan needs its own order). Name a schedule.",
           request.name);
  }
  return requests;
}

}  // namespace

void add_plan_options(longhaul::Arguments& command, PlanArguments& arguments) {
  command.option("--order", arguments.order,
                 "of the datacenters: availability (default), price or distance");
  command.option("--search", arguments.search,
                 "algorithm1 (default; Atlas section 4.5); exact: every order of every subset of "
                 "datacenters, D, C and schedule, by branch and bound; parallel: (t, d, p), "
                 "micro-batch, schedule, recomputation and sharding of a model");
  command.option("--objective", arguments.objective,
                 "of --search exact: throughput (default), cost or time; of --search parallel: "
                 "time (default), cost or utilisation");
  command.option("--limit", arguments.limit,
                 "of --search exact: candidates to evaluate at most (default: no limit)");
  command.option("--max-cells", arguments.most_cells, "largest D (default: what GPUs allow)");
  command.option("--cell", arguments.pipelines,
                 "C, pipelines of a DP-cell; a comma list for --search exact (default: "
                 "parallel.cell, or by the links)");
  command.option("--threads", arguments.threads, "default: all cores");
  command
      .flag("--pooled", arguments.pooled,
            "simulate the WAN of a cell as one link, not scatter, WAN and gather as ranks do")
      .takes_no_value();
  command
      .option("--sweep", arguments.sweeps,
              "PATH=FROM:TO:STEP, as in datacenter.b.gpus=0:600:60: the best plan of each "
              "value (repeat for a grid)")
      .one_value_each();
  command.option("--break-even", arguments.break_even,
                 "A,B: how fast their link must be until two datacenters beat one");
  command.option("--latencies", arguments.latencies,
                 "of --break-even: comma list (default: 5ms,10ms,20ms,40ms,80ms)");
  command.option("--tolerance", arguments.tolerance,
                 "of --break-even: of the bandwidth (default: 0.001)");
}

std::vector<std::string> words_of(const char* option, const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, comma - at));
    at = comma + 1;
    if (words.back().empty())
      fail("{}: \"{}\" has an empty word (commas stand between words). Leave the comma out.",
           option, list);
  }
  return words;
}

DatacenterId datacenter_of(const Scenario& scenario, const std::string& name, const char* option) {
  std::vector<std::string> names;
  for (const Datacenter& datacenter : scenario.datacenters) names.push_back(datacenter.name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    fail("{}: there is no datacenter \"{}\". {}", option, name, suggestion(name, names));
  return DatacenterId{static_cast<int>(found - names.begin())};
}

PlanOptions plan_options_of(const PlanArguments& arguments, const std::string& schedules) {
  PlanOptions options;
  options.schedules = schedules_of(schedules.empty() ? schedule::kSitePlannerSchedules : schedules);
  if (!arguments.order.empty())
    options.order = choice<planner::SiteOrder>("--order", arguments.order);
  if (!arguments.search.empty()) options.exact = is_exact(arguments.search);
  if (!arguments.objective.empty())
    options.objective = choice<planner::SiteObjective>("--objective", arguments.objective);
  if (!arguments.most_cells.empty())
    options.most_cells = whole_number("--max-cells", arguments.most_cells, 1, kMostCells);
  if (!arguments.pipelines.empty()) {
    for (const std::string& word : words_of("--cell", arguments.pipelines))
      options.pipelines.push_back(whole_number("--cell", word, 1, schedule::kMostPipelinesOfACell));
  }
  if (!arguments.limit.empty())
    options.limit = whole_number("--limit", arguments.limit, 1, 1 << 30);
  if (!arguments.threads.empty())
    options.threads = whole_number("--threads", arguments.threads, 1, kMostThreads);
  if (!options.exact && options.pipelines.size() > 1)
    fail("--cell: a list is for --search exact (algorithm 1 takes one). Name one, or add it.");
  if (arguments.pooled) options.model = planner::CellModel::pooled;
  const std::string latencies =
      arguments.latencies.empty() ? "5ms,10ms,20ms,40ms,80ms" : arguments.latencies;
  for (const std::string& word : words_of("--latencies", latencies)) {
    options.latencies.push_back(parse_duration(word));
    if (options.latencies.back() < Duration::zero())
      fail(
          "--latencies: {} is negative (messages do not arrive before they leave). Give one from "
          "0ms on.",
          word);
  }
  if (!arguments.tolerance.empty()) options.tolerance = tolerance_of(arguments.tolerance);
  check_use(arguments, options);
  return options;
}

}  // namespace longhaul::cli
