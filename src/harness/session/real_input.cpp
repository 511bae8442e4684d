#include "base/error.hpp"
#include "harness/session/training_session.hpp"
#include "nn/layers/weights.hpp"
#include "training/model_layout.hpp"
#include "training/operators/check_operators.hpp"

namespace longhaul::harness {
namespace {

/// A block of real layers is one rank's.
void check_blocks(const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  if (parallel.tensor > 1)
    fail(
        "parallel.tensor = {} (a stage of real layers is one rank, which computes all of it, "
        "unless an overlap divides it). Write --set parallel.tensor=1, or --overlap megatron.",
        parallel.tensor);
  if (parallel.shard > 1 && parallel.shard < parallel.replicas)
    fail(
        "parallel.shard = {} of {} replicas (real layers have their weights whole, or sharded over "
        "all replicas, unless an overlap shards them). Write --set parallel.shard={}, or --overlap "
        "zero3.",
        parallel.shard, parallel.replicas, parallel.replicas);
  if (parallel.replicas > 1 && parallel.gradient_sync == GradientSync::none)
    fail(
        "parallel.gradient_sync is \"none\" with {} replicas (each would train a model of its "
        "own). Write gradient_sync = \"all-reduce\" or \"zero1\".",
        parallel.replicas);
}

void check_real_model(const Scenario& scenario) {
  if (scenario.model->tensor_parallel > 1)
    fail(
        "model.tensor_parallel = {} (a device of real layers is one rank, which computes all of "
        "them). Write --set model.tensor_parallel=1.",
        scenario.model->tensor_parallel);
  if (scenario.has_uneven_replicas())
    fail(
        "the replicas have different costs or microbatches (real layers check their gradients "
        "against equal ones). Give all the same.");
}

}  // namespace

void check_real_schedule(const Scenario& scenario, const Schedule& schedule) {
  const nn::ModelShape shape = training::model_shape(scenario);
  for (const nn::LayerRange& layers : training::layers_of_stages(schedule, scenario))
    nn::check_layers(shape, layers);
  check_real_model(scenario);
  check_blocks(scenario);
}

void check_real_input(const PipelineInput& input) {
  if (!input.compute.real) return;
  const nn::ModelShape shape = training::model_shape(input.scenario);
  for (const PlannedSchedule& planned : input.schedules)
    for (const nn::LayerRange& layers :
         training::layers_of_stages(planned.schedule, input.scenario))
      nn::check_layers(shape, layers);
  check_real_model(input.scenario);
  if (!input.scenario.services.empty())
    fail("[[service]] ranks beside real layers (they have none). Leave --compute real out.");
  for (const PlannedSchedule& planned : input.schedules) {
    if (!planned.overlap) {
      check_blocks(input.scenario);
      continue;
    }
    training::check_operators(*planned.overlap->iteration, shape);
  }
}

}  // namespace longhaul::harness
