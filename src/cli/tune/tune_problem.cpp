#include "cli/tune/tune_problem.hpp"

#include "base/error.hpp"
#include "scenario/training/training_presets.hpp"

namespace longhaul::cli {
namespace {

const scenario::TrainingPreset& preset_of(const Scenario& scenario) {
  const auto* const preset = scenario::find_training_preset(scenario.train.preset);
  if (preset == nullptr)
    fail(
        "{}: [train] has no preset (which model is trained?). Name one, as in preset = "
        "\"vit-b-16\".",
        scenario.name);
  return *preset;
}

}  // namespace

planner::TuneProblem tune_problem_of(const Scenario& scenario) {
  const scenario::TrainingPreset& preset = preset_of(scenario);
  if (scenario.parallel.stages != 1)
    fail("{}: {} stages (tune is for replicas of one stage). Set parallel.stages to 1.",
         scenario.name, scenario.parallel.stages);
  const std::vector<std::string> gpus = scenario.gpus_of_ranks();
  if (gpus.empty())
    fail("{}: a datacenter names no gpu (how fast are its replicas?). Give [[datacenter]] gpu.",
         scenario.name);
  planner::TuneProblem problem;
  for (const std::string& gpu : gpus) {
    const GpuThroughput speed = scenario::throughput_of(preset, gpu);
    problem.gpus.push_back({speed.alpha, speed.beta});
  }
  problem.model_bytes = 4.0 * static_cast<double>(preset.parameters);
  problem.lambda = scenario.train.lambda;
  return problem;
}

}  // namespace longhaul::cli
