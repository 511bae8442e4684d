#include "schedule/validity/validity.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/checks.hpp"

namespace longhaul::schedule {
namespace {

using checks::violation;

std::optional<Violation> shape_violation(const Schedule& schedule, const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  const auto differs = [&](const char* what, const char* key, int have, int want) {
    return checks::violation(
        ViolationKind::shape,
        "The schedule has {} {}, but the scenario has {}. Use a schedule made for it, "
        "or set parallel.{}.",
        have, what, want, key);
  };
  if (schedule.devices != parallel.stages) {
    return differs("devices", "stages", schedule.devices, parallel.stages);
  }
  if (schedule.microbatches != parallel.microbatches) {
    return differs("microbatches", "microbatches", schedule.microbatches, parallel.microbatches);
  }
  if (schedule.replicas != parallel.replicas) {
    return differs("replicas", "replicas", schedule.replicas, parallel.replicas);
  }
  if (schedule.replica_microbatches != parallel.replica_microbatches) {
    return checks::violation(
        ViolationKind::shape,
        "The schedule's replicas have other counts of microbatches than the scenario's. Use a "
        "schedule made for it, or set parallel.microbatches.");
  }
  return std::nullopt;
}

/// The first violation that `check` finds in a replica.
template <typename Check>
std::optional<Violation> of_replicas(const Schedule& schedule, Check check) {
  for (const ReplicaId replica : schedule.replica_ids()) {
    auto wrong = check(replica, schedule.of_replica(replica));
    if (!wrong) continue;
    wrong->text = fmt::format("Replica {}: {}", replica, wrong->text);
    return wrong;
  }
  return std::nullopt;
}

/// "5 MiB (2.5 activations of its stage)".
std::string activations_text(Bytes size, Bytes of_stage, const char* whose) {
  if (of_stage == Bytes{}) return to_text(size);
  const double count = static_cast<double>(size.count()) / static_cast<double>(of_stage.count());
  return fmt::format("{} ({:.4g} activations of {})", to_text(size), count, whose);
}

std::optional<Violation> budget_violation(const Schedule& schedule, const Scenario& scenario) {
  const ActivationModel model{schedule, scenario};
  const Bytes allowed = allowed_activation(schedule, scenario);
  const auto& activations = scenario.costs.activation;
  const Bytes largest = *std::max_element(activations.begin(), activations.end());
  for (std::size_t row = 0; row < schedule.rows.size(); ++row) {
    const Bytes of_stage = activations[row % to_size(schedule.devices)];
    Bytes held;
    for (std::size_t position = 0; position < schedule.rows[row].size(); ++position) {
      const Block& block = schedule.rows[row][position];
      const MemoryEffect effect = model.effect(block);
      held += effect.at_start;
      if (held > allowed) {
        return checks::violation(
            ViolationKind::memory,
            "{} holds {} with {} at position {}, over the budget of {} by {} bytes. Raise "
            "memory.budget ({} now) or use a schedule that holds less.",
            checks::device_text(schedule, row), activations_text(held, of_stage, "its stage"),
            to_text(block), position,
            activations_text(scenario.activation_budget(), largest, "the largest stage"),
            (held - scenario.activation_budget()).count(), scenario.memory.budget);
      }
      held += effect.at_end;
    }
  }
  return std::nullopt;
}

std::optional<Violation> capacity_violation(const Schedule& schedule, const Scenario& scenario) {
  for (const DeviceNeed& memory : device_memory(schedule, scenario)) {
    if (memory.fits()) continue;
    const Bytes of_stage = scenario.costs.activation[index(memory.device)];
    return checks::violation(
        ViolationKind::memory,
        "device {} needs {}, {} bytes over its capacity of {}: weights {}, gradients {}, optimizer "
        "{}, activations {}, buffers {}. Use more stages, recomputation, or a schedule that holds "
        "less.",
        memory.device, to_text(memory.total()), (memory.total() - *memory.capacity).count(),
        to_text(*memory.capacity), to_text(memory.weights), to_text(memory.gradients),
        to_text(memory.optimizer), activations_text(memory.activations, of_stage, "its stage"),
        to_text(memory.buffers));
  }
  return std::nullopt;
}

}  // namespace

std::optional<Violation> first_violation(const Schedule& schedule) {
  if (auto wrong = checks::counts_violation(schedule)) return wrong;
  if (!schedule.replica_microbatches.empty())
    return of_replicas(schedule,
                       [](ReplicaId, const Schedule& alone) { return first_violation(alone); });
  checks::BlockCounts census{schedule};
  const std::size_t rows = schedule.rows.size();
  for (std::size_t row = 0; row < rows; ++row) {
    if (auto wrong = census.count(row)) return wrong;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    if (auto wrong = census.missing(row)) return wrong;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    if (auto wrong = census.order(row)) return wrong;
  }
  for (std::size_t row = 0; row < rows; row += to_size(schedule.devices)) {
    if (auto wrong = checks::deadlock(schedule, row)) return wrong;
  }
  if (auto wrong = checks::turns_violation(schedule)) return wrong;
  return checks::turns_deadlock(schedule);
}

std::optional<Violation> first_violation(const Schedule& schedule, const Scenario& scenario) {
  if (auto wrong = first_violation(schedule)) return wrong;
  if (auto wrong = shape_violation(schedule, scenario)) return wrong;
  if (scenario.has_uneven_replicas())
    return of_replicas(schedule, [&](ReplicaId replica, const Schedule& alone) {
      return first_violation(alone, scenario.of_replica(replica));
    });
  if (auto wrong = budget_violation(schedule, scenario)) return wrong;
  return capacity_violation(schedule, scenario);
}

std::optional<std::string> violation_but_memory(const Schedule& schedule,
                                                const Scenario& scenario) {
  auto violation = first_violation(schedule, scenario);
  if (!violation || violation->kind == ViolationKind::memory) return std::nullopt;
  return std::move(violation->text);
}

}  // namespace longhaul::schedule
