#include <algorithm>
#include <map>
#include <ostream>

#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/suggest.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "cli/plan/layout_plan.hpp"
#include "report/record_file.hpp"
#include "scenario/presets.hpp"
#include "scenario/text/config_node.hpp"
#include "scenario/text/csv_lines.hpp"

namespace longhaul::cli {
namespace {

using scenario::CsvLine;

constexpr int kMostBatch = 1 << 24;

/// Models and batches that jobs name, with the line that names each first.
std::map<std::pair<std::string, int>, CsvLine> workloads_of(const std::string& jobs,
                                                            const std::string& source) {
  std::map<std::pair<std::string, int>, CsvLine> found;
  std::optional<std::size_t> model, batch;
  bool is_header = true;
  scenario::each_csv_line(jobs, source, [&](const CsvLine& line) {
    if (std::exchange(is_header, false)) {
      for (std::size_t i = 0; i < line.words.size(); ++i) {
        if (line.words[i] == "model") model = i;
        if (line.words[i] == "global_batch") batch = i;
      }
      if (!model || !batch)
        line.refuse("--plans needs the columns model and global_batch. Add them.");
      return;
    }
    if (line.words.size() <= std::max(*model, *batch)) return;  // refused where jobs are read
    found.emplace(std::pair{std::string{line.words[*model]},
                            whole_number("global_batch", line.words[*batch], 1, kMostBatch)},
                  line);
  });
  return found;
}

const Model& preset_of(const CsvLine& line, const std::string& name) {
  std::vector<std::string> names;
  for (const scenario::ModelPreset& each : scenario::model_presets()) {
    if (each.model.name == name) return each.model;
    names.push_back(each.model.name);
  }
  line.refuse("--plans: there is no model \"{}\" (presets are known). {}", scenario::shown(name),
              suggestion(name, names));
}

std::string rates_by_plans(const LayoutArguments& typed, const std::string& jobs,
                           const std::string& source, int gpus) {
  const auto how = choice<planner::RatePlans>("--plans", typed.plans);
  const profile::Machine& machine =
      profile::machine_named(typed.machine.empty() ? "vtrain-a100-512" : typed.machine);
  LayoutArguments space;
  space.gpus = std::to_string(gpus);
  space.memory = typed.memory;
  space.sharding = "none";
  const LayoutTexts texts{space, "1f1b", {}};
  std::string table = "model,global_batch,gpus,iterations_per_second\n";
  for (const auto& [workload, line] : workloads_of(jobs, source)) {
    planner::LayoutProblem problem;
    problem.model =
        planner::row_of_model(preset_of(line, workload.first), machine.name, workload.second);
    problem.machine = &machine;
    problem.values = machine.parameters;
    problem.memory = machine.memory;
    set_limits(texts, space, problem);
    const auto rates = planner::plan_rates(problem, layout_space(texts, problem), how, gpus).rates;
    if (rates.empty())
      line.refuse(
          "--plans: no layout of {} with global batch {} fits {} GPUs of {} ({}). Give more GPUs, "
          "or --memory.",
          workload.first, workload.second, gpus, machine.name,
          typed.memory.empty() ? to_text(machine.memory) : typed.memory);
    for (const planner::GpuRate& each : rates)
      table += fmt::format("{},{},{},{}\n", workload.first, workload.second, each.gpus, each.rate);
  }
  return table;
}

}  // namespace

void add_rate_options(Arguments& command, LayoutArguments& arguments) {
  command.option("--plans", arguments.plans,
                 "instead of --throughput: baseline (t of a node, least p that fits, d grows) or "
                 "best, from the search of `plan`, for models that `longhaul presets` lists");
  command.option("--rates-out", arguments.rates_out, "of --plans: write the table (.csv)");
  command.option("--machine", arguments.machine,
                 "of --plans, as `longhaul predict` has them (default: vtrain-a100-512)");
  command.option("--memory", arguments.memory,
                 "of --plans: of a GPU, as 40GB; any (default: the machine's)");
}

RateTable rate_table(const Options& options, const std::string& jobs, int gpus) {
  const LayoutArguments& typed = options.layout;
  const std::string& throughput = options.cluster.throughput;
  if (throughput.empty() == typed.plans.empty())
    fail(
        "cluster: {}",
        typed.plans.empty()
            ? "--throughput is missing (how fast each model runs). Name its table (.csv), or give "
              "--plans best."
            : "--throughput and --plans are both given (each says how fast models run). Keep one.");
  if (typed.plans.empty()) {
    const std::pair<const char*, const std::string&> given[] = {
        {"--machine", typed.machine}, {"--memory", typed.memory}, {"--rates-out", typed.rates_out}};
    for (const auto& [option, text] : given)
      if (!text.empty())
        fail("{}: it has no effect with --throughput (it goes with --plans). Leave it out.",
             option);
  }
  if (typed.plans.empty()) return {read_text_file(throughput), throughput};
  if (!typed.rates_out.empty()) report::require_new_file(typed.rates_out);
  RateTable table{rates_by_plans(typed, jobs, options.files.front(), gpus),
                  "--plans " + typed.plans};
  if (!typed.rates_out.empty())
    report::write_new_file(typed.rates_out, [&](std::ostream& out) { out << table.text; });
  return table;
}

}  // namespace longhaul::cli
