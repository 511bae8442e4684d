#include "collective/iteration/iteration_of.hpp"

#include <algorithm>
#include <utility>

#include "plan/lowering/lower.hpp"
#include "plan/lowering/turns.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "scenario/model_operators.hpp"
#include "scenario/reader/stored_text.hpp"

namespace longhaul::collective {
namespace {

std::optional<Refusal> why_ranks_differ(const Schedule& schedule, const Scenario& scenario) {
  const auto differ = [&](const char* reason, const char* remedy) {
    return refused("--overlap cannot take {} ({}). {}", schedule.name, reason, remedy);
  };
  if (scenario.has_uneven_replicas())
    return differ("the ranks of a stage do the same, and replicas here differ",
                  "Give all replicas the same costs and microbatches.");
  if (schedule.copies > 1)
    return differ("it holds copies of the model in one pipeline", "Take a schedule with one.");
  // Turns on the WAN are an order of what pipelines send; collectives go beside it.
  if (!std::ranges::all_of(schedule.link_orders, plan::is_turns))
    return differ("it states the order of messages on links, without collectives",
                  "Take a schedule that does not.");
  for (const ReplicaId replica : schedule.replica_ids())
    for (const DeviceId device : schedule.device_ids())
      if (!std::ranges::equal(schedule.row(replica, device), schedule.row(ReplicaId{0}, device)))
        return differ("its replicas follow rows of their own", "Take one with the same rows.");
  return std::nullopt;
}

}  // namespace

Result<IterationPlan> iteration_of(const Schedule& schedule, const Scenario& scenario,
                                   Arrangement arrangement) {
  if (auto why = why_ranks_differ(schedule, scenario)) return *std::move(why);
  const Scenario own = scenario::without_collectives(scenario);
  Scenario alone = own;
  alone.parallel.gradient_sync = GradientSync::none;
  Result<Plan> blocks = plan::try_lower(schedule, alone, arrangement);
  if (!blocks) return blocks.refusal();
  Result<Plan> listed = plan::with_operators(*std::move(blocks), schedule, alone);
  if (!listed) return listed.refusal();
  IterationPlan made;
  made.scenario = std::make_shared<const Scenario>(own);
  made.schedule = std::make_shared<const Schedule>(schedule);
  made.base = std::make_shared<const Plan>(plan::expand(*listed));
  made.piece_times = scenario::piece_times(scenario);
  for (const DeviceId device : schedule.device_ids())
    made.stages.push_back(operations_of_stage(made, device));
  return made;
}

}  // namespace longhaul::collective
