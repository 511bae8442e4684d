#include "harness/training/train_control.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "plan/stream_values.hpp"
#include "planner/tune/tune_problem.hpp"

namespace longhaul::harness {
namespace {

constexpr std::size_t kVerdictHead = 5;  // numbers of a verdict before the batches

template <typename Number>
std::vector<std::byte> bytes_of_numbers(const std::vector<Number>& numbers) {
  const auto bytes = std::as_bytes(std::span{numbers});
  return {bytes.begin(), bytes.end()};
}

template <typename Number>
std::vector<Number> numbers_of_bytes(std::span<const std::byte> word) {
  std::vector<Number> numbers(word.size() / sizeof(Number));
  std::memcpy(numbers.data(), word.data(), word.size());
  return numbers;
}

/// The first is 0 where nothing changes.
std::vector<double> verdict_numbers(const planner::Adaptation& made) {
  std::vector<double> numbers{static_cast<double>(index(made.reason)) + 1,
                              made.bandwidth.bits_per_second(), made.setting.compression_rate,
                              made.setting.g, static_cast<double>(index(made.setting.binding))};
  numbers.insert(numbers.end(), made.setting.batch.begin(), made.setting.batch.end());
  return numbers;
}

planner::Adaptation adaptation_of(int iteration, const std::vector<double>& numbers) {
  planner::Adaptation made;
  made.iteration = iteration;
  made.reason = static_cast<planner::AdaptationReason>(static_cast<int>(numbers[0]) - 1);
  made.bandwidth = Bandwidth{numbers[1]};
  made.setting.compression_rate = numbers[2];
  made.setting.g = numbers[3];
  made.setting.binding = static_cast<planner::TuneBinding>(static_cast<int>(numbers[4]));
  for (std::size_t r = kVerdictHead; r < numbers.size(); ++r)
    made.setting.batch.push_back(static_cast<int>(numbers[r]));
  return made;
}

Rank rank_of_controller(const Scenario& scenario) {
  for (const Rank rank : ids<Rank>(scenario.ranks()))
    if (scenario.place_of(rank).role == RankRole::controller) return rank;
  fail("{}: no rank is its controller (train.adapt.every = {}).", scenario.name,
       scenario.train.adapt.every);
}

}  // namespace

Scenario with_controller(Scenario scenario) {
  if (scenario.train.adapt.every == 0) return scenario;
  scenario.train.batch = report::first_batches(scenario, planner::tune_problem_of(scenario));
  const auto decides = [](const ServiceRanks& service) {
    return service.role == RankRole::controller;
  };
  if (std::ranges::none_of(scenario.services, decides))
    scenario.add_services({RankRole::controller, scenario.datacenter_of(Rank{0}), 1});
  return scenario;
}

TrainControl::TrainControl(const Schedule& schedule, const Scenario& scenario, const Plan& plan,
                           int iterations, Rank self, Changed changed)
    : schedule_{schedule},
      scenario_{scenario},
      first_plan_{plan},
      iterations_{iterations},
      self_{self},
      controller_rank_{rank_of_controller(scenario)},
      changed_{std::move(changed)},
      decider_{report::controller_of(scenario, plan)},
      first_setting_{decider_.setting()},
      telemetry_{plan} {}

void TrainControl::begin(int first) {
  began_ = first;
  telemetry_.forget_before(iterations_);
}

std::size_t TrainControl::report_size() const {
  return sizeof(std::int64_t) * (2 + telemetry_.links().size());
}

std::size_t TrainControl::verdict_size() const {
  return sizeof(double) * (kVerdictHead + first_setting_.batch.size());
}

bool TrainControl::is_due(int iteration) const {
  const TrainingAdaptation& adapt = scenario_.train.adapt;
  return (iteration + 1) % adapt.every == 0 && first_open(iteration) < iterations_ &&
         adapt.changes != AdaptedSettings::nothing;
}

int TrainControl::first_open(int iteration) const {
  return planner::TrainingController::first_open(iteration, scenario_.train.staleness);
}

std::vector<std::byte> TrainControl::report(int /*iteration*/, const OpTimes& times) {
  const report::StreamTelemetry::OfRank seen = telemetry_.seen_by(self_, times);
  std::vector<std::int64_t> numbers{seen.start.count(), seen.busy.count()};
  for (const Duration held : seen.held) numbers.push_back(held.count());
  return bytes_of_numbers(numbers);
}

void TrainControl::hear(int iteration, Rank from, std::span<const std::byte> report) {
  const auto numbers = numbers_of_bytes<std::int64_t>(report);
  report::StreamTelemetry::OfRank seen{Duration{numbers[0]}, Duration{numbers[1]}, {}};
  for (std::size_t link = 2; link < numbers.size(); ++link) seen.held.emplace_back(numbers[link]);
  telemetry_.add(iteration, from, std::move(seen));
}

std::vector<std::byte> TrainControl::verdict(int iteration) {
  std::optional<int> first = decider_.window(iteration);
  if (first) first = std::max(*first, began_);
  std::vector<double> numbers(kVerdictHead + first_setting_.batch.size());
  if (first && *first < iteration) {
    const Bandwidth measured =
        report::bandwidth_of(decider_, telemetry_.longest_hold(*first, iteration));
    numbers = verdict_numbers(decider_.decide(
        iteration, telemetry_.of(*first, iteration, decider_.setting().batch), measured));
  }
  telemetry_.forget_before(iteration + 1 - std::max(scenario_.train.adapt.every, 2));
  return bytes_of_numbers(numbers);
}

std::optional<plan::StreamSetting> TrainControl::heed(int iteration,
                                                      std::span<const std::byte> verdict) {
  const auto numbers = numbers_of_bytes<double>(verdict);
  if (numbers[0] == 0) return std::nullopt;
  take(adaptation_of(first_open(iteration), numbers));
  return settings_.back();
}

void TrainControl::take(const planner::Adaptation& made) {
  const Scenario changed = report::with_setting(scenario_, made.setting);
  Plan next = plan::lower_exchanges(schedule_, changed, {});
  settings_.push_back(
      plan::setting_between(last_plan_ ? *last_plan_ : first_plan_, next, made.iteration));
  last_plan_ = std::move(next);
  decisions_.push_back(made);
  changed_(made);
}

report::AdaptationReport TrainControl::report_of(int iterations) const {
  return report::adaptation_report(first_setting_, decisions_, iterations);
}

void TrainControl::save(training::StateWriter& to) const {
  to.put(static_cast<std::uint64_t>(decisions_.size()));
  for (const planner::Adaptation& made : decisions_) {
    to.put(made.iteration);
    to.put_all<double>(verdict_numbers(made));
  }
  for (const auto& [speed, by_batch] : decider_.learned()) {
    to.put(speed);
    to.put(static_cast<std::uint64_t>(by_batch.size()));
    for (const auto& [batch, throughput] : by_batch) {
      to.put(batch);
      to.put(throughput);
    }
  }
}

void TrainControl::load(training::StateReader& from) {
  for (auto count = from.take<std::uint64_t>(); count > 0; --count) {
    const int iteration = from.take<int>();
    take(adaptation_of(iteration, from.take_all<double>()));
  }
  std::vector<planner::TrainingController::Learned> learned(first_setting_.batch.size());
  for (auto& [speed, by_batch] : learned) {
    speed = from.take<planner::GpuSpeed>();
    for (auto count = from.take<std::uint64_t>(); count > 0; --count) {
      const int batch = from.take<int>();
      by_batch[batch] = from.take<double>();
    }
  }
  if (!decisions_.empty()) decider_.resume(decisions_.back(), std::move(learned));
}

}  // namespace longhaul::harness
