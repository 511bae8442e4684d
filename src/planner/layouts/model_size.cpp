#include "planner/layouts/model_size.hpp"

#include <cmath>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

constexpr int kHeadWidth = 128;

std::string reasons_of(const LayoutSearch& search) {
  std::string text;
  for (const auto& [reason, count] : search.refused)
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", reason, count);
  return text;
}

SizedModel size_model(LayoutProblem problem, const ComputeBudget& budget, const ModelShape& shape,
                      const SizeOptions& options) {
  problem.model = with_shape(problem.model, shape);
  const profile::TrainingRow& row = problem.model;
  SizedModel model;
  model.shape = shape;
  model.parameters = paper_parameters(shape.hidden, shape.layers, row.vocabulary, row.sequence);
  model.tokens = kTokensPerParameter * model.parameters;
  model.loss = hoffmann_loss(model.parameters, model.tokens);
  LayoutSpace space = options.space_of(problem);
  space.has_gpus = [gpus = budget.gpus](std::int64_t count) { return count == gpus; };
  LayoutSearchOptions how;
  how.is_stopped = options.is_stopped;
  const LayoutSearch search = search_layouts(problem, space, how);
  if (search.plans.empty()) {
    model.why_none = reasons_of(search);
    return model;
  }
  model.plan = search.plans.front();
  const Duration iteration = model.plan->iteration;
  model.utilisation = paper_utilisation(row, iteration, budget.gpus, budget.peak_flops);
  const double tokens_a_day =
      double(row.global_batch) * row.sequence * 86400e9 / static_cast<double>(iteration.count());
  model.days = model.tokens / tokens_a_day;
  model.tokens_in_budget = budget.days * tokens_a_day;
  model.loss_in_budget = hoffmann_loss(model.parameters, model.tokens_in_budget);
  return model;
}

}  // namespace

double paper_parameters(int hidden, int layers, int vocabulary, int sequence) {
  const double h = hidden, L = layers;
  return 12 * L * h * h + 13 * L * h + (double(vocabulary) + sequence) * h;
}

NaivePoint printed_equations(double flops) {
  return {0.089 * std::sqrt(flops), 1.875 * std::sqrt(flops)};
}

double hoffmann_loss(double parameters, double tokens) {
  return 1.69 + 406.4 / std::pow(parameters, 0.34) + 410.7 / std::pow(tokens, 0.28);
}

std::vector<ModelShape> table_three_shapes() {
  return {{12288, 80}, {12288, 70}, {12288, 60}, {10240, 80}, {10240, 70}, {10240, 60},
          {9216, 80},  {9216, 70},  {9216, 60},  {8192, 70},  {8192, 60}};
}

profile::TrainingRow with_shape(profile::TrainingRow row, const ModelShape& shape) {
  row.model = fmt::format("h={} L={}", shape.hidden, shape.layers);
  row.hidden = shape.hidden;
  row.layers = shape.layers;
  row.intermediate = 4 * shape.hidden;
  row.heads = row.kv_heads = std::max(1, shape.hidden / kHeadWidth);
  return row;
}

std::vector<SizedModel> size_models(const LayoutProblem& problem, const ComputeBudget& budget,
                                    const std::vector<ModelShape>& shapes,
                                    const SizeOptions& options) {
  std::vector<SizedModel> models;
  for (const ModelShape& shape : shapes) {
    if (options.is_stopped && options.is_stopped()) break;
    models.push_back(size_model(problem, budget, shape, options));
  }
  return models;
}

int largest_within(const std::vector<SizedModel>& models, double days) {
  int best = -1;
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!models[i].plan || models[i].days > days) continue;
    if (best < 0 || models[i].parameters > models[static_cast<std::size_t>(best)].parameters)
      best = static_cast<int>(i);
  }
  return best;
}

int least_loss_within(const std::vector<SizedModel>& models) {
  int best = -1;
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (!models[i].plan) continue;
    const double loss = models[i].loss_in_budget;
    if (best < 0 || loss < models[static_cast<std::size_t>(best)].loss_in_budget)
      best = static_cast<int>(i);
  }
  return best;
}

}  // namespace longhaul::planner
