#include "planner/advice/advice.hpp"

#include "planner/advice/scenario_adviser.hpp"

namespace longhaul::planner {

Result<Advice> advise(const Scenario& scenario, const AdviceOptions& options) {
  constexpr int kSteps = 5;
  IdeaPool pool;
  pool.refuse(Idea::layout, "the scenario says how the model is divided");
  pool.refuse(Idea::sites, "the scenario says where its stages are");
  pool.refuse(Idea::prefill, "it fills what stays idle, and an iteration takes as long");
  if (!options.methods) pool.refuse(Idea::method, kWhyExact);
  const auto tell = [&](int done) {
    if (const AdvisedPlan* const best = pool.best(); best && options.after_step)
      options.after_step(done, kSteps, *best);
  };
  ScenarioAdviser::Place place;
  place.longest = options.longest;
  ScenarioAdviser adviser{scenario, options, pool, place};
  adviser.try_candidates(options.time);
  tell(1);
  if (auto refusal = adviser.search_orders(options.time)) return *std::move(refusal);
  tell(2);
  adviser.try_turns(options.time);
  tell(3);
  adviser.try_overlaps(options.time, {}, StaticStarts::every);
  tell(4);
  adviser.try_methods(options.time, Searched::yes, StaticStarts::every);
  tell(5);
  if (pool.best() == nullptr)
    return refused("no plan is within the deadline ({} evaluated). Give more time.",
                   pool.advice().evaluated);
  Advice advice = pool.advice();
  if (options.keeps_all) advice.all = pool.plans_in_time();
  return advice;
}

}  // namespace longhaul::planner
