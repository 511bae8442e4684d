#include "harness/training/train_rank.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "device/cpu_devices.hpp"
#include "harness/session/link_conditions_run.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "planner/make_schedule.hpp"
#include "scenario/model_costs.hpp"
#include "training/model_layout.hpp"

namespace longhaul::harness {
namespace {

/// Up to here all gradients and steps of a run are summed up, to see that none is lost.
constexpr std::int64_t kMostNumbersAccounted = 10'000'000;

std::int64_t model_numbers(const Scenario& scenario) {
  return static_cast<std::int64_t>(scenario::model_parameters(*scenario.model));
}

Scenario scenario_of(const TrainRequest& request) {
  Scenario scenario = request.method->scenario;
  scenario.run.seed = static_cast<std::uint64_t>(request.seed);
  return scenario;
}

/// Sets as long as the method's; of Espresso also how each piece of a part is sent.
Plan resized_plan(const Schedule& schedule, Scenario scenario, const TrainRequest& request,
                  const plan::PartExchanges& exchanges,
                  std::vector<training::PartChoice>& of_parts) {
  if (request.method->chooses_for_parts) {
    of_parts = training::choose_for_parts(schedule, scenario);
    scenario.train.compress.method = CompressMethod::none;
  }
  Plan plan = plan::lower_exchanges(schedule, scenario, exchanges);
  if (request.method->chooses_for_parts && !scenario.train.message)
    training::resize_sets(plan, [&](int part) { return of_parts[to_size(part)].bits; });
  if (request.method->rival && !scenario.train.message && exchanges.sizes.empty())
    training::resize_sets(plan, [bits = training::bits_per_number(*request.method->rival)](
                                    int /*part*/) { return bits; });
  return plan;
}

}  // namespace

SampleOrder::SampleOrder(const Scenario& scenario)
    : microbatches_{scenario.parallel.microbatches}, stretches_{std::make_shared<Stretches>()} {
  Stretch first{
      std::vector<int>(to_size(scenario.parallel.replicas), scenario.model->microbatch_size), 0};
  if (!scenario.train.batch.empty()) first.batches = scenario.train.batch;
  stretches_->from.emplace(0, std::move(first));
}

void SampleOrder::change_from(int iteration, std::vector<int> batches) {
  const auto& [from, last] = stretch_of(iteration);
  const std::int64_t before =
      last.before + last.of_microbatch() * microbatches_ * (iteration - from);
  const std::lock_guard lock{stretches_->mutex};
  stretches_->from[iteration] = {std::move(batches), before};
}

std::pair<int, SampleOrder::Stretch> SampleOrder::stretch_of(int iteration) const {
  const std::lock_guard lock{stretches_->mutex};
  return *std::prev(stretches_->from.upper_bound(iteration));
}

std::vector<int> SampleOrder::batches(int iteration) const {
  return stretch_of(iteration).second.batches;
}

std::int64_t SampleOrder::samples(int iteration) const {
  return stretch_of(iteration).second.of_microbatch() * microbatches_;
}

std::uint64_t SampleOrder::first(int iteration, ReplicaId replica, MicrobatchId microbatch) const {
  const auto& [from, stretch] = stretch_of(iteration);
  std::int64_t sample =
      stretch.before + stretch.of_microbatch() * microbatches_ * (iteration - from);
  for (std::size_t r = 0; r < index(replica); ++r) sample += stretch.batches[r] * microbatches_;
  return static_cast<std::uint64_t>(sample + static_cast<std::int64_t>(number(microbatch)) *
                                                 stretch.batches[index(replica)]);
}

nn::TextSource SampleOrder::text(std::shared_ptr<const training::TrainingData> data) const {
  return [order = *this, data = std::move(data)](int iteration, ReplicaId replica,
                                                 MicrobatchId microbatch) {
    return data->samples(order.first(iteration, replica, microbatch),
                         order.batches(iteration)[index(replica)]);
  };
}

TrainRank::TrainRank(engine::Ranks& ranks, const TrainRequest& request,
                     const TrainSettings& settings)
    : ranks_{ranks},
      request_{request},
      settings_{settings},
      scenario_{scenario_of(request)},
      samples_{scenario_},
      schedule_{planner::make_schedule(request.schedule, scenario_).schedule},
      exchanges_{request.method->rival
                     ? training::exchanges_of_rival(*request.method->rival, schedule_, scenario_)
                     : plan::PartExchanges{}},
      plan_{resized_plan(schedule_, scenario_, request, exchanges_, of_parts_)},
      math_{nn::make_cpu_math()},
      memory_{*math_, 0} {
  if (scenario_.train.adapt.every > 0)
    control_ = std::make_unique<TrainControl>(
        schedule_, scenario_, plan_, request.iterations, ranks.self(),
        [this](const planner::Adaptation& made) { change(made); });
  if (plan_.ranks[index(ranks.self())].role != RankRole::training) return;
  work_ = std::make_unique<training::ReplicaWork>(plan_, schedule_, scenario_, ranks.self(), *math_,
                                                  memory_, work_settings());
  sets_ = std::make_unique<training::SetDataPlane>(plan_, *work_, scenario_.train.activations);
  if (settings.compute == TrainCompute::timed) return;
  device_ = std::make_unique<device::StreamDevice>(*work_, ranks.host_ranks(), settings.pace);
}

training::ReplicaWork::Settings TrainRank::work_settings() const {
  const ReplicaId replica = plan_.ranks[index(ranks_.self())].replica;
  training::ReplicaWork::Settings settings;
  settings.model.shape = training::model_shape(scenario_);
  settings.model.shape.batch = samples_.batches()[index(replica)];
  settings.model.seed = scenario_.run.seed;
  settings.model.text = samples_.text(request_.data);
  settings.model.tokens = targets();
  const training::StepSettings step{request_.method->optimizer,
                                    static_cast<float>(request_.learning_rate)};
  settings.make_method = [compress = scenario_.train.compress, rival = request_.method->rival,
                          of_parts = of_parts_, step](const training::PartPlace& place) {
    if (rival) return training::make_rival(*rival, place, step);
    return of_parts.empty() ? training::make_part_method(compress, place, step)
                            : training::make_espresso(of_parts[to_size(place.number)].pieces,
                                                      compress, place, step);
  };
  settings.exchanges = exchanges_;
  if (request_.method->rival && request_.method->rival->rival == training::Rival::streaming_diloco)
    settings.mixing = request_.method->rival->overlap > 0 ? request_.method->rival->mixing : 0;
  if (request_.method->rival && training::steps_locally(request_.method->rival->rival)) {
    settings.local = step;
    settings.model.tokens =
        targets() / static_cast<double>(samples_.samples()) * settings.model.shape.batch;
    settings.loss_share = settings.model.tokens / targets();
    settings.outer_weight = static_cast<float>(
        static_cast<double>(settings.model.shape.batch) * scenario_.parallel.replicas *
        scenario_.parallel.microbatches / static_cast<double>(samples_.samples()));
  }
  if (replica == ReplicaId{0}) settings.keep_every = settings_.point_every;
  settings.last = request_.iterations - 1;
  settings.accounts = model_numbers(scenario_) <= kMostNumbersAccounted;
  settings.survives_bad_gradients = request_.is_trial;
  return settings;
}

double TrainRank::targets(int iteration) const {
  const int of_sample = request_.data->facts().classes > 0 ? 1 : scenario_.model->sequence_length;
  return static_cast<double>(samples_.samples(iteration)) * of_sample;
}

/// On the engine's thread, before the iteration begins here.
void TrainRank::change(const planner::Adaptation& made) {
  samples_.change_from(made.iteration, made.setting.batch);
  if (!work_) return;
  sets_->change(control_->settings().back());
  const ReplicaId replica = plan_.ranks[index(ranks_.self())].replica;
  work_->change_from(made.iteration, {made.setting.batch[index(replica)], targets(made.iteration),
                                      1 - made.setting.compression_rate});
}

void TrainRank::save(training::StateWriter& to) const {
  if (control_) control_->save(to);
  if (work_) work_->save(to);
  if (sets_) sets_->save(to);
}

void TrainRank::load(training::StateReader& from, int iterations) {
  if (control_) control_->load(from);
  if (work_) work_->load(from, iterations);
  if (sets_) sets_->load(from);
}

void TrainRank::finish() {
  if (work_) work_->finish();
}

void TrainRank::take(const engine::IterationResult& result) {
  if (!work_) return;
  const std::vector<training::PlannedPart>& parts = work_->part_ops().parts();
  stretch_.starts.emplace_back(result.times[index(work_->part_ops().first_block())].start);
  stretch_.ends.push_back(result.end.seen);
  stretch_.checks += result.checks;
  std::vector<std::int32_t>& ages = stretch_.ages.emplace_back();
  const int late = scenario_.train.buffers == 1 ? scenario_.train.staleness : 0;
  for (const training::PlannedPart& part : parts) {
    const int version =
        result.versions.empty() ? -1 : result.versions[index(part.first_forward)] - late;
    ages.push_back(result.iteration - std::max(version, -1));
  }
}

TrainRank::Stretch TrainRank::take_stretch() {
  Stretch stretch = std::exchange(stretch_, {});
  if (!work_) return stretch;
  if (!device_)
    sets_->count_planned(ranks_.self(), stretch.first,
                         stretch.first + static_cast<int>(stretch.ends.size()),
                         settings_.engine.payload);
  stretch.losses = work_->take_losses();
  stretch.kept = work_->take_kept();
  stretch.sent = sets_->take_sent();
  stretch.diverged = work_->has_diverged();
  if (device_) stretch.overruns = device_->take_overruns();
  return stretch;
}

void TrainRank::run(int first, int past, Duration age) {
  stretch_.first = first;
  const plan::Weather weather{plan_, scenario_};
  engine::EngineOptions options = settings_.engine;
  options.run = scenario_.run;
  Duration longest{};
  for (const Op& op : plan_.ops) longest = std::max(longest, op.duration);
  device::TimedDevice timed;
  std::optional<engine::Engine> engine;
  if (device_)
    engine.emplace(plan_, ranks_, *device_, *sets_, options);
  else
    engine.emplace(plan_, ranks_, timed, options);
  if (request_.is_for_compose && !weather.calm())
    fail(
        "--compose: links of scenario {} vary (a few exchanges do not tell how long the rest "
        "take). "
        "Leave it out.",
        scenario_.name);
  const bool plays = !weather.calm() && options.emulation == engine::Emulation::on;
  ranks_.watchdog().watch(&plan_, 10 * longest + (plays ? kAfterYou : Duration::zero()));
  const engine::PlayedWeather played{plays ? &weather : nullptr,
                                     plays ? begin_weather(ranks_, request_.clock, age) : kNever};
  if (sets_) sets_->begin_at(first);
  if (device_) device_->begin_at(first);
  plan::Stream stream{past, {}, first};
  if (control_) {
    control_->begin(first);
    stream.settings = control_->settings();
  }
  engine->run_stream(
      stream, 0, [this](const engine::IterationResult& result) { take(result); }, played,
      control_.get());
  ranks_.watchdog().watch(nullptr, {});
}

}  // namespace longhaul::harness
