#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/layouts/layout_figures.hpp"

namespace longhaul::planner {

/// Weights of a GPT as vTrain counts them: 12 L h^2 + 13 L h + (V + s) h.
[[nodiscard]] double paper_parameters(int hidden, int layers, int vocabulary, int sequence);
/// Tokens that a model of so many weights should see (Chinchilla): 20 each.
inline constexpr double kTokensPerParameter = 20;

/// GPUs for a time.
struct ComputeBudget {
  int gpus = 0;
  double days = 0;
  double peak_flops = 0;  ///< of a GPU
  [[nodiscard]] double flops() const { return gpus * peak_flops * days * 86400; }
};

/// The naive Chinchilla point of vTrain's printed equations, N = 0.089 C^0.5 and T = 1.875 C^0.5.
struct NaivePoint {
  double parameters = 0, tokens = 0;
};
[[nodiscard]] NaivePoint printed_equations(double flops);

/// Hoffmann's parametric law of the loss (arXiv 2203.15556, equation 10): 1.69 + 406.4 / N^0.34 +
/// 410.7 / D^0.28.
[[nodiscard]] double hoffmann_loss(double parameters, double tokens);

struct ModelShape {
  int hidden = 0, layers = 0;
  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};
/// The shapes of vTrain's table III.
[[nodiscard]] std::vector<ModelShape> table_three_shapes();

/// A model with the fastest plan of all GPUs.
struct SizedModel {
  ModelShape shape;
  double parameters = 0;
  double tokens = 0;  ///< kTokensPerParameter each
  std::optional<LayoutPlan> plan;
  double utilisation = 0;
  double days = 0;              ///< to see these tokens
  double tokens_in_budget = 0;  ///< that it sees in the budget's days
  double loss = 0;              ///< with `tokens`
  double loss_in_budget = 0;    ///< with those of the budget
  std::string why_none{};
};

struct SizeOptions {
  std::function<LayoutSpace(const LayoutProblem&)> space_of;  ///< the layouts of a model
  /// Asked now and then; true ends with the shapes that were looked at, the last one maybe not
  /// whole.
  std::function<bool()> is_stopped{};
};

/// Each shape in turn on exactly the budget's GPUs. `problem` gives machine, batch, vocabulary and
/// sequence.
[[nodiscard]] std::vector<SizedModel> size_models(const LayoutProblem& problem,
                                                  const ComputeBudget& budget,
                                                  const std::vector<ModelShape>& shapes,
                                                  const SizeOptions& options);

/// The row of a GPT of that shape: heads of 128.
[[nodiscard]] profile::TrainingRow with_shape(profile::TrainingRow row, const ModelShape& shape);

/// The largest model that sees its tokens within the time; -1: none does.
[[nodiscard]] int largest_within(const std::vector<SizedModel>& models, double days);
/// The model of least loss within the budget's days, over- and under-training included; -1: none.
[[nodiscard]] int least_loss_within(const std::vector<SizedModel>& models);

}  // namespace longhaul::planner
