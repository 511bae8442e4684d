#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/table.hpp"
#include "cli/command/stop_signal.hpp"
#include "cli/plan/layout_plan.hpp"
#include "planner/layouts/model_size.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;
using planner::ModelShape;
using planner::SizedModel;

constexpr int kMostSide = 1 << 20;
constexpr std::size_t kMostModels = 1024;
/// With it vTrain's table III comes out to the digit; with GPT-2's 50,257 two rows do not.
constexpr int kGptVocabulary = 50'000, kGptSequence = 2048;
constexpr int kUsualBatch = 1680;  ///< all replicas of vTrain's table III divide it

/// "h=8192,9216,L=60,70": every width with every depth; nothing: vTrain's table III.
std::vector<ModelShape> shapes_of(const std::string& grid) {
  if (grid.empty()) return planner::table_three_shapes();
  std::string hidden, layers;
  std::string* into = nullptr;
  for (std::string word : longhaul::words_of(grid, ',')) {
    if (word.starts_with("h=") || word.starts_with("L=")) {
      into = word[0] == 'h' ? &hidden : &layers;
      word = word.substr(2);
    }
    if (into == nullptr)
      fail("--model-grid: \"{}\" begins with neither h= nor L=. Write h=8192,9216,L=60,70.", grid);
    *into += (into->empty() ? "" : ",") + word;
  }
  if (hidden.empty() || layers.empty())
    fail("--model-grid: \"{}\" has no {}. Write h=8192,9216,L=60,70.", grid,
         hidden.empty() ? "h=" : "L=");
  const std::size_t depths = planner::read_counts("--model-grid", layers, kMostSide).size();
  if (planner::read_counts("--model-grid", hidden, kMostSide).size() * depths > kMostModels)
    fail("--model-grid: \"{}\" has more than {} models (each is searched). Give fewer.", grid,
         kMostModels);
  std::vector<ModelShape> shapes;
  for (const int h : planner::read_counts("--model-grid", hidden, kMostSide))
    for (const int L : planner::read_counts("--model-grid", layers, kMostSide)) {
      if (h % 128 != 0)
        fail("--model-grid: h={} does not divide by 128 (the width of a head). Take {}.", h,
             std::max(128, h / 128 * 128));
      shapes.push_back({h, L});
    }
  std::ranges::reverse(shapes);  // the largest first, as in table III
  return shapes;
}

struct SizeRun {
  planner::LayoutProblem problem;
  planner::ComputeBudget budget;
  std::vector<SizedModel> models;
  bool by_loss = false;
  bool stopped = false;
};

SizeRun sized(const Options& options) {
  const SizeArguments& typed = options.size;
  const LayoutArguments& space = options.layout;
  if (space.gpus.empty()) fail("size: --gpus is missing (how many train). Give it: --gpus 3360.");
  if (typed.days.empty())
    fail("size: --days is missing (how long they train). Give it: --days 30.");
  if (!typed.loss.empty() && typed.loss != "hoffmann")
    fail("--loss: there is no \"{}\". Write hoffmann.", typed.loss);
  SizeRun run;
  run.by_loss = !typed.loss.empty();
  const LayoutTexts texts{space, options.schedule, {}};
  const profile::Machine& machine = profile::machine_named(texts.get("machine", "selene"));
  run.problem.machine = &machine;
  const profile::Calibration calibration = layout_calibration(space.calibration);
  const auto known = calibration.find(machine.name);
  run.problem.values = known == calibration.end() ? machine.parameters : known->second.values;
  run.problem.memory = machine.memory;
  set_limits(texts, space, run.problem);
  profile::TrainingRow& row = run.problem.model;
  row.machine = machine.name;
  row.sequence = kGptSequence;
  row.vocabulary = kGptVocabulary;
  row.global_batch = typed.global_batch.empty()
                         ? kUsualBatch
                         : whole_number("--global-batch", typed.global_batch, 1, kMostSide);
  run.budget = {whole_number("--gpus", space.gpus, 1, kMostSide),
                positive_number("--days", typed.days), machine.gpu.flops_per_ns * 1e9};
  const std::vector<ModelShape> shapes = shapes_of(typed.model_grid);
  const auto space_of = [&](const planner::LayoutProblem& problem) {
    planner::LayoutSpace found = layout_space(texts, problem);
    require_few_points(problem, found);
    return found;
  };
  const StopSignal stop;
  run.models = planner::size_models(run.problem, run.budget, shapes, {space_of, &StopSignal::came});
  run.stopped = StopSignal::came();
  if (run.models.empty()) fail("size: it was stopped before it had a model. Give it longer.");
  if (std::ranges::none_of(run.models,
                           [](const SizedModel& each) { return each.plan.has_value(); }))
    fail("size: no model of the grid has a plan on {} GPUs (h = {}, L = {}: {}).", run.budget.gpus,
         run.models.front().shape.hidden, run.models.front().shape.layers,
         run.models.front().why_none);
  return run;
}

/// The largest model of the list that the printed equations' naive point holds.
const SizedModel* naive_model(const SizeRun& run) {
  const double most = planner::printed_equations(run.budget.flops()).parameters;
  const SizedModel* best = nullptr;
  for (const SizedModel& model : run.models)
    if (model.parameters <= most && (best == nullptr || model.parameters > best->parameters))
      best = &model;
  return best;
}

ordered_json model_json(const SizeRun& run, const SizedModel& model) {
  ordered_json json{{"hidden", model.shape.hidden},
                    {"layers", model.shape.layers},
                    {"parameters", model.parameters},
                    {"tokens", model.tokens}};
  if (!model.plan) {
    for (const char* const key : {"plan", "utilisation", "days"}) json[key] = nullptr;
    json["why_none"] = model.why_none;
    return json;
  }
  const planner::Layout& layout = model.plan->layout;
  json["plan"] = {{"tensor", layout.tensor},
                  {"data", layout.data},
                  {"pipeline", layout.pipeline},
                  {"micro_batch", layout.micro_batch},
                  {"chunks", layout.chunks},
                  {"schedule", planner::to_string(layout.order)},
                  {"recompute", to_string(layout.recompute)},
                  {"sharding", profile::to_string(layout.sharding)},
                  {"iteration_ns", model.plan->iteration.count()},
                  {"memory_bytes", model.plan->memory.count()},
                  {"fits", model.plan->memory <= run.problem.machine->memory}};
  json["utilisation"] = model.utilisation;
  json["days"] = model.days;
  json["tokens_in_budget"] = model.tokens_in_budget;
  json["loss"] = model.loss;
  json["loss_in_budget"] = model.loss_in_budget;
  return json;
}

ordered_json naive_json(const SizeRun& run) {
  const double flops = run.budget.flops();
  const planner::NaivePoint printed = planner::printed_equations(flops);
  const SizedModel* const model = naive_model(run);
  ordered_json json{{"flops", flops},
                    {"parameters", model == nullptr ? printed.parameters : model->parameters},
                    {"tokens", model == nullptr ? printed.tokens : model->tokens}};
  json["printed_equations"] = {{"parameters", printed.parameters}, {"tokens", printed.tokens}};
  return json;
}

ordered_json loss_json(const SizeRun& run, int best) {
  ordered_json json{{"law", "1.69 + 406.4 / N^0.34 + 410.7 / D^0.28"},
                    {"source", "Hoffmann et al., arXiv 2203.15556, equation 10"}};
  json["best"] = best < 0 ? ordered_json{} : ordered_json(best);
  const SizedModel* const naive = naive_model(run);
  if (best < 0 || naive == nullptr || !naive->plan) return json;
  const SizedModel& chosen = run.models[static_cast<std::size_t>(best)];
  json["naive_loss_in_budget"] = naive->loss_in_budget;
  json["best_loss_in_budget"] = chosen.loss_in_budget;
  json["naive_days_over_budget"] = naive->days - run.budget.days;
  return json;
}

std::string size_json(const Options& options, const SizeRun& run, double seconds) {
  ordered_json json = report::record_header(
      {.numbers = "simulated", .creator = "longhaul", .command_line = options.command_line});
  json["machine"] = run.problem.machine->name;
  json["gpus"] = run.budget.gpus;
  json["days"] = run.budget.days;
  json["global_batch"] = run.problem.model.global_batch;
  json["naive"] = naive_json(run);
  json["models"] = ordered_json::array();
  for (const SizedModel& model : run.models) json["models"].push_back(model_json(run, model));
  const int best = planner::largest_within(run.models, run.budget.days);
  json["best"] = best < 0 ? ordered_json{} : ordered_json(best);
  if (run.by_loss) json["loss"] = loss_json(run, planner::least_loss_within(run.models));
  json["stopped"] = run.stopped;
  json["seconds"] = seconds;
  return report::json_text(json);
}

Table size_table(bool by_loss) {
  std::vector<Table::Column> columns{{"h"},
                                     {"L"},
                                     {"10^9 weights"},
                                     {"10^9 tokens"},
                                     {"t,d,p", Align::left},
                                     {"b"},
                                     {"schedule", Align::left},
                                     {"util."},
                                     {"days"}};
  if (by_loss) columns.insert(columns.end(), {{"loss then"}, {"10^9 in time"}, {"loss in time"}});
  columns.push_back({"", Align::left});
  return Table{columns};
}

std::string size_text(const SizeRun& run, TableWidth width) {
  const planner::NaivePoint printed = planner::printed_equations(run.budget.flops());
  std::string text = fmt::format(
      "{} GPUs of {} for {:g} days: {:.4g} FLOPs; simulated\nnaive point of the printed equations: "
      "{:.1f} 10^9 weights, {:.0f} 10^9 tokens\n\n",
      run.budget.gpus, run.problem.machine->name, run.budget.days, run.budget.flops(),
      printed.parameters / 1e9, printed.tokens / 1e9);
  const int best = planner::largest_within(run.models, run.budget.days);
  const int least = run.by_loss ? planner::least_loss_within(run.models) : -1;
  Table table = size_table(run.by_loss);
  for (std::size_t i = 0; i < run.models.size(); ++i) {
    const SizedModel& model = run.models[i];
    std::vector<std::string> row{
        std::to_string(model.shape.hidden), std::to_string(model.shape.layers),
        fmt::format("{:.2f}", model.parameters / 1e9), fmt::format("{:.0f}", model.tokens / 1e9)};
    if (!model.plan) {
      row.push_back(fmt::format("none: {}", model.why_none));
      table.add_row(row);
      continue;
    }
    const planner::Layout& layout = model.plan->layout;
    row.insert(row.end(), {fmt::format("{},{},{}", layout.tensor, layout.data, layout.pipeline),
                           std::to_string(layout.micro_batch), planner::to_string(layout.order),
                           fmt::format("{:.2f}%", 100 * model.utilisation),
                           fmt::format("{:.1f}", model.days)});
    if (run.by_loss)
      row.insert(row.end(), {fmt::format("{:.4f}", model.loss),
                             fmt::format("{:.0f}", model.tokens_in_budget / 1e9),
                             fmt::format("{:.4f}", model.loss_in_budget)});
    std::string mark = static_cast<int>(i) == best ? "largest in time" : "";
    if (static_cast<int>(i) == least) mark += mark.empty() ? "least loss" : ", least loss";
    row.push_back(mark);
    table.add_row(row);
  }
  text += table.text(width);
  if (run.stopped)
    text += "stopped: models that are missing, and the last one's plan, may be better\n";
  return text;
}

}  // namespace

void add_size_options(Arguments& command, std::string& gpus, SizeArguments& arguments) {
  command.option("--gpus", gpus, "that train: one number");
  command.option("--days", arguments.days, "that the GPUs train");
  command.option("--model-grid", arguments.model_grid,
                 "widths and depths: h=8192,9216,L=60,70 (default: those of vTrain's table III)");
  command.option("--global-batch", arguments.global_batch, "sequences (default: 1680)");
  command.option("--loss", arguments.loss,
                 "hoffmann: also the model of least loss by Hoffmann's law, trained for all the "
                 "time");
}

Answer size_command(const Options& options) {
  const TimePoint begin = now();
  const SizeRun run = sized(options);
  const double seconds = std::chrono::duration<double>(now() - begin).count();
  if (options.json) return {size_json(options, run, seconds)};
  return {size_text(run, table_width(options))};
}

}  // namespace longhaul::cli
