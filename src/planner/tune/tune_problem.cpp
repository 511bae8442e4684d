#include "planner/tune/tune_problem.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text_file.hpp"
#include "scenario/training/training_presets.hpp"

namespace longhaul::planner {
namespace {

const scenario::TrainingPreset& tuned_preset(const Scenario& scenario) {
  const auto* const preset = scenario::find_training_preset(scenario.train.preset);
  if (preset == nullptr)
    fail(
        "{}: [train] has no preset (which model is trained?). Name one, as in preset = "
        "\"vit-b-16\".",
        scenario.name);
  return *preset;
}

}  // namespace

TuneProblem tune_problem_of(const Scenario& scenario) {
  const scenario::TrainingPreset& preset = tuned_preset(scenario);
  if (scenario.parallel.stages != 1)
    fail("{}: {} stages (tune is for replicas of one stage). Set parallel.stages to 1.",
         scenario.name, scenario.parallel.stages);
  std::vector<std::string> gpus = scenario.gpus_of_ranks();
  gpus.resize(std::min(gpus.size(), to_size(scenario.training_ranks())));
  if (gpus.empty())
    fail("{}: a datacenter names no gpu (how fast are its replicas?). Give [[datacenter]] gpu.",
         scenario.name);
  TuneProblem problem;
  for (const std::string& gpu : gpus) {
    const GpuThroughput speed = scenario::throughput_of(preset, gpu);
    problem.gpus.push_back({speed.alpha, speed.beta});
  }
  problem.model_bytes = 4.0 * static_cast<double>(preset.parameters);
  problem.lambda = scenario.train.lambda;
  if (const int most = scenario.train.adapt.most_batch; most > 0) problem.most_samples = most;
  return problem;
}

ProbeTable probes_for(const Scenario& scenario, const std::string& file) {
  ProbeTable table = read_probes(read_text_file(file), file);
  if (!is_same_model(table.model, scenario.train.preset))
    fail("{}: probes of {}, and {} trains {}. Name probes of that model.", file, table.model,
         scenario.name, scenario.train.preset);
  return table;
}

Surrogate surrogate_for(const Scenario& scenario) {
  const TrainingAdaptation& adapt = scenario.train.adapt;
  if (adapt.probes.empty()) {
    constexpr double kMostSamples = 1024;
    const double least = scenario.parallel.replicas;
    return Surrogate{{{least, 0, 0}, {kMostSamples, 0, 0}, {least, 0.999, 0}}};
  }
  std::vector<Probe> probes = probes_for(scenario, adapt.probes).probes;
  for (Probe& probe : probes) {
    probe.g *= adapt.scale;
    if (!(probe.g > -1))
      fail(
          "train.adapt.scale = {}: 1 + {} x g is {} at a batch of {} (no loss is reached in no "
          "time). Take a smaller scale.",
          adapt.scale, adapt.scale, 1 + probe.g, probe.batch);
  }
  return Surrogate{std::move(probes)};
}

}  // namespace longhaul::planner
