#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/index.hpp"
#include "base/result.hpp"
#include "planner/hierarchy/replica_program.hpp"
#include "planner/hierarchy/ring_times.hpp"
#include "scenario/scenario.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::planner {

/// Links by pair of datacenters, found at once: a scenario has a million of them.
class LinkIndex {
public:
  /// `scenario` outlives it.
  explicit LinkIndex(const Scenario& scenario);
  /// nullptr where none is given.
  [[nodiscard]] const Link* find(DatacenterId from, DatacenterId to) const {
    const std::int32_t place = places_[index(from) * count_ + index(to)];
    return place < 0 ? nullptr : &scenario_.links[at(place)];
  }
  /// From a rank to another one.
  [[nodiscard]] RingLink between(Rank from, Rank to) const;

private:
  const Scenario& scenario_;
  std::size_t count_;
  std::vector<std::int32_t> places_;
};

/// The op list of each replica of a scenario under a schedule; equal ones are one.
class SharedPrograms {
public:
  /// All outlive it.
  SharedPrograms(const Scenario& scenario, const schedule::Generator& generator,
                 const LinkIndex& links);
  /// Refused where the schedule is not defined on a replica, or is of another kind than a static
  /// one of one copy of the model.
  [[nodiscard]] std::optional<Refusal> make();

  [[nodiscard]] const ReplicaProgram& of(ReplicaId replica) const {
    return programs_[of_replica_[index(replica)]];
  }
  [[nodiscard]] int count() const { return static_cast<int>(programs_.size()); }
  /// Of replica 0: devices and chunks, which all replicas have in common.
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }

private:
  using Signature = std::vector<std::int64_t>;
  [[nodiscard]] Signature signature_of(ReplicaId replica) const;
  /// Datacenters of its stages, each once, in the order of the stages.
  [[nodiscard]] std::vector<DatacenterId> places_of(ReplicaId replica) const;
  /// The replica as the only one, of one tensor rank: without the links of other replicas.
  [[nodiscard]] Scenario alone(ReplicaId replica) const;

  const Scenario& scenario_;
  const schedule::Generator& generator_;
  const LinkIndex& links_;
  std::vector<ReplicaProgram> programs_;
  std::vector<std::size_t> of_replica_;
  Schedule schedule_;
};

}  // namespace longhaul::planner
