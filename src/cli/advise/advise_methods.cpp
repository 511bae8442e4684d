#include <fmt/format.h>

#include "base/program/option_values.hpp"
#include "base/text_file.hpp"
#include "cli/advise/advised.hpp"
#include "cli/tune/family.hpp"

namespace longhaul::cli {

using planner::TrainingChange;

std::optional<planner::TrainingMethods> methods_of(const Options& options,
                                                   const Scenario& scenario) {
  const AdviseArguments& typed = options.advise;
  const TuneArguments& learned = options.tune;
  const TrainingChange most =
      typed.allow.empty() ? TrainingChange::exact : choice<TrainingChange>("--allow", typed.allow);
  if (most == TrainingChange::exact) {
    if (!learned.curves.empty() || !learned.target.empty())
      fail("--curves and --target are of methods that change the result. Give --allow lossy, too.");
    return std::nullopt;
  }
  if (typed.objective == "value")
    fail(
        "--allow {} with --objective value: what prompts earn until a loss is not known. Leave "
        "one out.",
        typed.allow);
  if (learned.curves.empty())
    fail("--allow {}: how methods learn is not known. Give --curves, as of tune --family.",
         typed.allow);
  const double loss = target_loss(learned, scenario);
  const std::vector<planner::FamilyMember> members =
      planner::read_family(read_text_file(learned.curves), learned.curves);
  try {
    return planner::allowed_methods(members, most, loss);
  } catch (const Error& error) {
    fail("{}: {}", learned.curves, error.what());
  }
}

PlanFacts with_method(PlanFacts facts, const planner::AdvisedPlan& plan,
                      const std::optional<planner::TrainingMethods>& methods,
                      const PartCosts& costs) {
  if (!plan.method) return facts;
  const planner::FamilyMember& member = methods->others[*plan.method];
  for (std::string each :
       {fmt::format("parallel.gradient_sync={}", to_string(GradientSync::compressed)),
        fmt::format("train.compress.method={}", to_string(CompressMethod::none)),
        fmt::format("train.compress.exchange={}", to_string(member.exchange)),
        fmt::format("train.serve={}", to_string(member.serve)),
        fmt::format("train.staleness={}", member.staleness), std::string{"train.local_steps=1"},
        std::string{"train.adapt.every=0"}, fmt::format("train.message={}B", plan.message.count())})
    facts.set.push_back(std::move(each));
  for (std::size_t i = 0; !member.has_host_tasks && i < std::size(kPartCosts); ++i)
    if (!(costs.*kPartCosts[i]).empty())
      facts.set.push_back(fmt::format("train.costs.{}=0ms", kPartCostNames[i]));
  return facts;
}

}  // namespace longhaul::cli
