#include "harness/options/compute_options.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "harness/environment/shared_options.hpp"

namespace longhaul::harness {
namespace {

GradientChecks checks_of(const std::string& text) {
  if (text.empty()) return GradientChecks::by_size;
  const auto checks = from_string<GradientChecks>(text);
  if (checks && *checks != GradientChecks::by_size) return *checks;
  fail("--check-gradients {} is neither all, first nor off. Write --check-gradients all.", text);
}

}  // namespace

void add_compute_options(Arguments& arguments, ComputeOptions& options) {
  arguments
      .option("--compute", options.compute,
              "timed: blocks take their modelled time; real: layers of the scenario's model")
      .shows_default();
  add_device_option(arguments, options.device, "what computes blocks: cpu or cuda");
  arguments.option("--optimizer", options.optimizer, "sgd or adamw, of real layers")
      .shows_default();
  arguments.option("--learning-rate", options.learning_rate, "of the optimizer").shows_default();
  arguments.option("--check-gradients", options.check_gradients,
                   "iterations of real layers held against one rank: all, first or off (default: "
                   "all of a small model, first of others)");
}

nlohmann::ordered_json compute_json(const ComputeOptions& options) {
  return {{"compute", options.compute},
          {"device", options.device},
          {"optimizer", options.optimizer},
          {"learning_rate", options.learning_rate},
          {"check_gradients", options.check_gradients.empty() ? to_string(GradientChecks::by_size)
                                                              : options.check_gradients}};
}

ComputeSettings compute_settings_of(const ComputeOptions& options) {
  ComputeSettings settings;
  if (options.compute != "timed" && options.compute != "real")
    fail("--compute {} is neither timed nor real. Write --compute real.", options.compute);
  settings.real = options.compute == "real";
  settings.device = device_kind_of(options.device);
  const auto optimizer = from_string<nn::OptimizerKind>(options.optimizer);
  if (!optimizer)
    fail("--optimizer {} is neither sgd nor adamw. Write --optimizer adamw.", options.optimizer);
  settings.optimizer.kind = *optimizer;
  if (!(options.learning_rate > 0) || !std::isfinite(options.learning_rate))
    fail("--learning-rate {} is not positive (nothing would be learnt). Write 0.001.",
         options.learning_rate);
  settings.optimizer.learning_rate = static_cast<float>(options.learning_rate);
  if (!std::isnormal(settings.optimizer.learning_rate))
    fail("--learning-rate {} is no number of fp32 (weights are stepped in it). Write 0.001.",
         options.learning_rate);
  settings.checks = checks_of(options.check_gradients);
  return settings;
}

}  // namespace longhaul::harness
