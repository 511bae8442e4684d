#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
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
constexpr int kMostGpus = 1 << 20;

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

/// Makes the table of --plans.
class RatesByPlans {
public:
  RatesByPlans(const LayoutArguments& typed, const ClusterPlace& place)
      : typed_{typed},
        place_{place},
        how_{choice<planner::RatePlans>("--plans", typed.plans)},
        machine_{
            profile::machine_named(typed.machine.empty() ? "vtrain-a100-512" : typed.machine)} {
    if (place.scenario && how_ == planner::RatePlans::baseline)
      fail(
          "--plans baseline: d alone grows, in one pool of GPUs (and {} has {} sites). Give "
          "--plans "
          "best.",
          place.scenario->name, place.gpus.sites.size());
    space_.gpus =
        place.scenario ? fmt::format("1:{}", place.gpus.count) : std::to_string(place.gpus.count);
    space_.memory = typed.memory;
    space_.sharding = "none";
  }

  [[nodiscard]] std::string table(const std::string& jobs, const std::string& source) const {
    const char* const sites = place_.scenario ? ",sites" : "";
    std::string table = fmt::format("model,global_batch,gpus,iterations_per_second{}\n", sites);
    for (const auto& [workload, line] : workloads_of(jobs, source)) {
      const std::size_t before = table.size();
      const planner::LayoutProblem problem =
          problem_of(preset_of(line, workload.first), workload.second);
      // Over links between sites the greedy that knows them beside the usual order.
      const LayoutTexts texts{space_, place_.scenario ? "1f1b,cross-ud" : "1f1b", {}};
      const auto add = [&](int gpus, double rate, const std::string& where) {
        table += fmt::format("{},{},{},{}{}\n", workload.first, workload.second, gpus, rate, where);
      };
      if (place_.scenario)
        for (const auto& each : planner::site_rates(problem, layout_space(texts, problem)))
          add(std::accumulate(each.gpus.begin(), each.gpus.end(), 0), each.rate,
              "," + planner::place_text(each.gpus, place_.gpus.sites));
      else
        for (const planner::GpuRate& each :
             planner::plan_rates(problem, layout_space(texts, problem), how_, place_.gpus.count)
                 .rates)
          add(each.gpus, each.rate, "");
      if (table.size() == before)
        line.refuse(
            "--plans: no layout of {} with global batch {} fits {} GPUs of {} ({}). Give more "
            "GPUs, or --memory.",
            workload.first, workload.second, place_.gpus.count, machine_.name,
            typed_.memory.empty() ? to_text(machine_.memory) : typed_.memory);
    }
    return table;
  }

private:
  [[nodiscard]] planner::LayoutProblem problem_of(const Model& model, int batch) const {
    planner::LayoutProblem problem;
    if (place_.scenario) {
      Scenario sites = *place_.scenario;
      sites.model = model;
      problem = planner::layout_problem(sites, machine_, {});
    }
    problem.model = planner::row_of_model(model, machine_.name, batch);
    problem.machine = &machine_;
    problem.values = machine_.parameters;
    problem.memory = machine_.memory;
    set_limits(LayoutTexts{space_, "1f1b", {}}, space_, problem);
    return problem;
  }

  const LayoutArguments& typed_;
  const ClusterPlace& place_;
  planner::RatePlans how_;
  const profile::Machine& machine_;
  LayoutArguments space_;
};

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

ClusterPlace cluster_place(const std::string& gpus) {
  ClusterPlace place;
  if (!gpus.ends_with(".toml")) {
    place.gpus.count = whole_number("--gpus", gpus, 1, kMostGpus);
    return place;
  }
  place.scenario = searched_scenario(gpus, {}).scenario;
  std::int64_t count = 0;
  for (const Datacenter& each : place.scenario->datacenters) {
    if (!each.gpus)
      fail("{}: datacenter {} does not say how many GPUs jobs share there. Give it gpus.", gpus,
           each.name);
    place.gpus.sites.push_back({each.name, *each.gpus});
    count += *each.gpus;
  }
  if (count < 1 || count > kMostGpus)
    fail("{}: its datacenters have {} GPUs together (1 to {} can be shared). Give others.", gpus,
         count, kMostGpus);
  place.gpus.count = static_cast<int>(count);
  return place;
}

RateTable rate_table(const Options& options, const std::string& jobs, const ClusterPlace& place) {
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
  RateTable table{RatesByPlans{typed, place}.table(jobs, options.files.front()),
                  "--plans " + typed.plans};
  if (!typed.rates_out.empty())
    report::write_new_file(typed.rates_out, [&](std::ostream& out) { out << table.text; });
  return table;
}

}  // namespace longhaul::cli
