#include "training/operators/check_operators.hpp"

#include <set>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/block_operators.hpp"
#include "training/operators/operator_parameters.hpp"

namespace longhaul::training {
namespace {

using collective::Operation;
using collective::StageWork;

/// Places whose backward the plan has, of all chunks.
std::set<std::pair<ChunkId, int>> backward_places(const StageWork& work) {
  std::set<std::pair<ChunkId, int>> places;
  for (const Operation& each : work.operations)
    if (each.microbatch == MicrobatchId{0} && each.work == BlockKind::D)
      places.emplace(each.chunk, each.place);
  return places;
}

void require_whole_operations(const StageWork& work, const std::string& name) {
  for (const Operation& each : work.operations)
    if (each.pieces > 1)
      fail(
          "{} cuts operators into pieces (real layers compute them whole). Name overlaps that do "
          "not, or use --compute timed.",
          name);
}

void require_operators_of_model(const Scenario& scenario) {
  for (const Operator& each : *scenario.operators.all) {
    if (each.layer < 0)
      fail(
          "operator {} is no part of a layer ([[operator]] gives times alone, and real layers "
          "compute those of [model]). Leave [[operator]] out, or use --compute timed.",
          each.name);
    if (each.name.ends_with("_residual"))
      fail(
          "operator {} is of costs.profile (real layers add what passes by with the product before "
          "it). Leave costs.profile out, or use --compute timed.",
          each.name);
  }
}

}  // namespace

void check_operators(const collective::IterationPlan& plan, const nn::ModelShape& shape) {
  const Scenario& scenario = *plan.scenario;
  check_tensor_ranks(shape, scenario.parallel);
  require_operators_of_model(scenario);
  if (scenario.parallel.replicas > 1 && scenario.parallel.gradient_sync == GradientSync::none)
    fail(
        "parallel.gradient_sync is \"none\" with {} replicas (each would train a model of its "
        "own). Write gradient_sync = \"all-reduce\", or name an overlap that sums.",
        scenario.parallel.replicas);
  const auto ranges = schedule::operators_of_chunks(*plan.schedule, scenario);
  for (const DeviceId stage : plan.stages.ids()) {
    const StageWork& work = plan.stages[stage];
    require_whole_operations(work, plan.schedule->name);
    const auto backward = backward_places(work);
    for (const ChunkId chunk : chunks_on(*plan.schedule, stage)) {
      if (ranges[chunk].count == 0)
        fail("chunk {} holds no layer (real layers need one). Give the model more layers.",
             number(chunk));
      for (std::size_t place = 0; place < ranges[chunk].count; ++place) {
        const Operator& own = (*scenario.operators.all)[ranges[chunk].first + place];
        if (own.name == "embedding" || own.name == "loss" ||
            backward.contains({chunk, static_cast<int>(place)}))
          continue;
        fail(
            "operator {} takes no time backward (real layers compute all that the plan has). Give "
            "the model a lower achieved_flops or memory_bandwidth.",
            own.name);
      }
    }
  }
}

}  // namespace longhaul::training
