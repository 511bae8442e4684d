#include "harness/training/train_run.hpp"

#include <cmath>
#include <limits>

#include "base/index.hpp"
#include "harness/ranks/main.hpp"
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
  MethodRun(engine::Ranks& ranks, const TrainMethod& method, const std::string& schedule,
            const TrainSettings& settings, const std::string& data, const comm::ClockOffset& clock)
      : ranks_{ranks}, settings_{settings}, data_{data} {
    request_.method = &method;
    request_.schedule = schedule;
    request_.clock = clock;
  }

  /// The best of the learning rates.
  double try_rates(TrainRun& run, const std::function<void(const std::string&)>& done) {
    double best = settings_.learning_rates.front(), least = std::numeric_limits<double>::infinity();
    if (settings_.learning_rates.size() == 1) return best;
    TrainSettings settings = settings_;
    settings.target.reset();
    settings.replay = false;
    settings.point_every = settings_.trial_iterations;
    for (const double rate : settings_.learning_rates) {
      const TrainCurve curve = play(0, rate, settings_.trial_iterations, settings);
      if (ranks_.is_first()) {
        const TrainPoint& end = curve.points.back();
        run.trials.push_back({curve.method, rate, end.validation, end.elapsed});
        if (end.validation < least) best = rate;
        least = std::min(least, end.validation);
      }
      done(fmt::format("{} at {}", curve.method, rate));
    }
    return broadcast_number(ranks_.world(), best);
  }

  TrainCurve play(int seed, double rate, int iterations, const TrainSettings& settings) {
    request_.seed = seed;
    request_.learning_rate = rate;
    request_.iterations = iterations;
    request_.data = training::open_data(data_, training::model_shape(request_.method->scenario),
                                        static_cast<std::uint64_t>(seed));
    const bool composes = settings.compose > 0 && !request_.method->depends_on_links() &&
                          settings.compute == TrainCompute::real;
    return with_watchdog(
        ranks_, [&] { return (composes ? compose_curve : run_curve)(ranks_, request_, settings); });
  }
  [[nodiscard]] const training::DataFacts& facts() const { return request_.data->facts(); }

private:
  engine::Ranks& ranks_;
  const TrainSettings& settings_;
  std::string data_;
  TrainRequest request_;
};

}  // namespace

void check_can_train(const Scenario& scenario, int ranks) {
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

void check_data(const std::string& data, const Scenario& scenario) {
  (void)training::open_data(data, training::model_shape(scenario), 0);
}

Duration TrainRun::search_cost(const std::string& method) const {
  Duration cost{};
  for (const TrainTrial& trial : trials)
    if (trial.method == method) cost += trial.took;
  return cost;
}

TrainRun run_training(engine::Ranks& ranks, const std::vector<TrainMethod>& methods,
                      const std::string& schedule, const TrainSettings& settings,
                      const std::string& data, const comm::ClockOffset& clock,
                      const std::function<void(const std::string&)>& done) {
  TrainRun run;
  for (const TrainMethod& method : methods) {
    MethodRun of_method{ranks, method, schedule, settings, data, clock};
    const double rate = of_method.try_rates(run, done);
    for (const int seed : settings.seeds) {
      TrainCurve curve = of_method.play(seed, rate, settings.iterations, settings);
      if (ranks.is_first()) run.curves.push_back(std::move(curve));
      run.data = of_method.facts();
      done(fmt::format("{}, seed {}", method.name, seed));
    }
  }
  return run;
}

}  // namespace longhaul::harness
