#include "harness/training/train_run.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/index.hpp"
#include "base/version.hpp"
#include "harness/ranks/main.hpp"
#include "harness/training/train_progress.hpp"
#include "harness/training/train_rivals.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "planner/make_schedule.hpp"
#include "planner/tune/tune_problem.hpp"
#include "report/watched_run.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

/// The same number on all ranks.
double broadcast_number(const comm::Communicator& world, double of_first) {
  return std::stod(world.broadcast(fmt::format("{}", of_first)));
}

/// Trials and curves of one method.
class MethodRun {
public:
  using Opened = std::map<int, std::shared_ptr<const training::TrainingData>>;  // by seed
  MethodRun(engine::Ranks& ranks, const TrainMethod& method, const TrainPlan& plan,
            const TrainSettings& settings, Opened& opened)
      : ranks_{ranks},
        plan_{plan},
        settings_{settings},
        opened_{opened},
        typed_{method},
        method_{method} {
    request_.method = &method_;
    request_.schedule = plan.schedule;
    request_.clock = plan.clock;
    request_.store = plan.progress;
  }

  /// The best of the learning rates.
  double try_rates(TrainRun& run) {
    const std::vector<double>& rates = settings_.rates_of(typed_.name);
    double best = rates.front(), least = std::numeric_limits<double>::infinity();
    if (rates.size() == 1) return best;
    TrainSettings settings = settings_;
    settings.replay = false;
    settings.point_every = settings_.trial_iterations;
    for (const double rate : rates) {
      const TrainCurve curve = play("trial", 0, rate, settings_.trial_iterations, settings);
      if (ranks_.is_first()) {
        const TrainPoint& end = curve.points.back();
        const double judged = curve.diverged || !std::isfinite(end.validation)
                                  ? std::numeric_limits<double>::infinity()
                                  : end.validation;
        run.trials.push_back({curve.method, rate, judged, end.elapsed});
        if (judged < least) best = rate;
        least = std::min(least, judged);
      }
      plan_.done(fmt::format("{} at {}", request_.method->name, rate));
    }
    return broadcast_number(ranks_.world(), best);
  }

  /// Of rivals with local steps as many exchanges as fit, one at least.
  TrainCurve play(const char* what, int seed, double rate, int iterations, TrainSettings settings) {
    request_.seed = seed;
    request_.learning_rate = rate;
    request_.is_trial = what == std::string_view{"trial"};
    method_.rival = with_warm_up(typed_.rival, iterations);
    const int steps = method_.local_steps();
    request_.iterations = std::max(1, iterations / steps);
    std::shared_ptr<const training::TrainingData>& data = opened_[seed];
    if (!data)
      data = training::open_data(plan_.data, training::model_shape(request_.method->scenario),
                                 static_cast<std::uint64_t>(seed));
    request_.data = data;
    settings.point_every = std::clamp(settings.point_every / steps, 1, request_.iterations);
    TrainCurve curve;
    if (plan_.progress != nullptr) {
      plan_.progress->begin(report::curve_name(what, request_.method->name, seed, rate),
                            request_.iterations);
      if (plan_.progress->find(curve)) return curve;
    }
    const bool composes = settings.compose > 0 && !request_.method->depends_on_links() &&
                          settings.compute == TrainCompute::real;
    return with_watchdog(ranks_, [&] {
      curve = (composes ? compose_curve : run_curve)(ranks_, request_, settings);
      if (plan_.progress != nullptr) plan_.progress->add(curve);
      return curve;
    });
  }
  [[nodiscard]] const training::DataFacts& facts() const { return request_.data->facts(); }

private:
  engine::Ranks& ranks_;
  const TrainPlan& plan_;
  const TrainSettings& settings_;
  Opened& opened_;
  TrainMethod typed_, method_;
  TrainRequest request_;
};

/// What the data are, which fit the model and the target.
training::DataFacts facts_of(const std::string& data, const Scenario& scenario,
                             const std::optional<TrainingTarget>& target) {
  const auto opened = training::open_data(data, training::model_shape(scenario), 0);
  if (target && target->kind == TargetKind::error && opened->facts().classes == 0)
    fail("--target error: the samples of {} have no class (only digits have). Use loss=X.",
         opened->facts().name);
  return opened->facts();
}

}  // namespace

void check_can_train(const Scenario& scenario, int ranks) {
  if (scenario.run.time_scale != 1)
    fail(
        "scenario {} has run.time_scale = {:g}, and layers that compute take the time that they "
        "take (beside links of another scale no time would be the scenario's). Leave it out, or "
        "write --set run.time_scale=1.",
        scenario.name, scenario.run.time_scale);
  (void)training::model_shape(scenario);
  if (scenario.parallel.gradient_sync != GradientSync::compressed)
    fail(
        "scenario {} sums gradients by \"{}\" (here they travel part by part). Write "
        "gradient_sync = \"compressed\" in [parallel].",
        scenario.name, to_string(scenario.parallel.gradient_sync));
  if (scenario.parallel.tensor > 1)
    fail("scenario {} has {} tensor ranks (parts are of whole layers). Write tensor = 1.",
         scenario.name, scenario.parallel.tensor);
  if (scenario.ranks() != ranks)
    fail("scenario {} has {} ranks, and {} were started. Start {}: scripts/mpi -n {}.",
         scenario.name, scenario.ranks(), ranks, scenario.ranks(), scenario.ranks());
}

void check_exchanges(const std::vector<TrainMethod>& methods, const std::string& schedule) {
  for (const TrainMethod& method : methods) {
    if (method.scenario.train.adapt.every > 0) {
      const Schedule made = planner::make_schedule(schedule, method.scenario).schedule;
      (void)report::controller_of(method.scenario,
                                  plan::lower_exchanges(made, method.scenario, {}));
    }
    if (!method.rival) continue;
    const Schedule made = planner::make_schedule(schedule, method.scenario).schedule;
    require_none(plan::why_no_exchanges(
        made, training::exchanges_of_rival(*method.rival, made, method.scenario)));
  }
}

std::optional<Duration> TrainRun::search_cost(const std::string& method) const {
  Duration cost{};
  if (const auto probed = probes.find(method); probed != probes.end()) {
    if (!probed->second) return std::nullopt;
    cost += *probed->second;
  }
  for (const TrainTrial& trial : trials)
    if (trial.method == method) cost += trial.took;
  return cost;
}

int count_runs(const TrainPlan& plan, const TrainSettings& settings) {
  if (settings.probes > 0) return settings.probes + 1;
  const std::size_t rates = settings.learning_rates.size();
  return static_cast<int>(plan.methods.size() * ((rates > 1 ? rates : 0) + settings.seeds.size()));
}

nlohmann::json asked_of(const TrainOptions& options, const Scenario& scenario,
                        const std::optional<TrainingTarget>& target) {
  const training::DataFacts data = facts_of(options.data, scenario, target);
  return {{"scenario", scenario.text},
          {"--schedule", options.schedule},
          {"--data", options.data},
          {"content of --data", data.train.sha256 + data.held_out.sha256},
          {"--methods", options.methods},
          {"--target", options.target},
          {"--lr-grid", options.learning_rates},
          {"--seeds", options.seeds},
          {"--optimizer", options.optimizer},
          {"--lazy", options.lazy},
          {"--emulate", options.emulate},
          {"--max-iterations", options.iterations},
          {"--trial-iterations", options.trial_iterations},
          {"--points", options.points},
          {"--held-out", options.held_out},
          {"--compose", options.compose},
          {"--compute", options.compute},
          {"--pace", options.pace},
          {"--replay", options.replay},
          {"--credit", options.credit},
          {"--probes", options.probes},
          {"--probe-samples", options.probe_samples},
          {"--probe-batches", options.probe_batches},
          {"commit", git_commit()}};
}

TrainRun run_training(engine::Ranks& ranks, const TrainPlan& plan, const TrainSettings& settings) {
  TrainRun run;
  MethodRun::Opened opened;
  for (const TrainMethod& method : plan.methods) {
    const TrainingAdaptation& adapt = method.scenario.train.adapt;
    if (ranks.is_first() && adapt.every > 0 && !adapt.probes.empty())
      run.probes[method.name] = planner::probes_for(method.scenario, adapt.probes).took;
    MethodRun of_method{ranks, method, plan, settings, opened};
    const double rate = of_method.try_rates(run);
    for (const int seed : settings.seeds) {
      TrainCurve curve = of_method.play("curve", seed, rate, settings.iterations, settings);
      if (ranks.is_first()) run.curves.push_back(std::move(curve));
      run.data = of_method.facts();
      plan.done(fmt::format("{}, seed {}", method.name, seed));
    }
  }
  return run;
}

}  // namespace longhaul::harness
