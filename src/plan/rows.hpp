#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::plan {

/// The rows of one iteration of a plan, each made when it is asked for: what append_rows() adds,
/// without the memory. Ids of datacenters, lanes and resources are the plan's own, unless a
/// `Numbering` says otherwise. Plan and times must outlive it.
class PlanRows {
public:
  /// Indices into tables of names, by the plan's.
  struct Numbering {
    std::int32_t schedule = 0;
    std::vector<std::int32_t> datacenter, lane, resource, collective, operators;
  };

  PlanRows(const Plan& plan, const OpTimes& times, int iteration = 0,
           const Numbering* numbers = nullptr)
      : plan_{&plan}, times_{&times}, numbers_{numbers}, iteration_{iteration} {}
  PlanRows(const Plan& plan, const OpResults& results, int iteration = 0,
           const Numbering* numbers = nullptr)
      : plan_{&plan},
        times_{&results.times},
        results_{&results},
        numbers_{numbers},
        iteration_{iteration} {}

  [[nodiscard]] std::size_t size() const { return plan_->ops.size(); }
  /// That of op `i`.
  [[nodiscard, gnu::always_inline]] TimelineRow operator[](std::size_t i) const;
  /// The receive of a send and the other way round; for the view of an iteration.
  [[nodiscard]] std::size_t other_side(std::size_t i) const { return plan_->ops[i].match; }

  /// Says in a row of a block of `chunk` which operator of it it is.
  void set_operator(TimelineRow& row, const OperatorStep& step, ChunkId chunk) const;

private:
  [[nodiscard]] RowKind kind_of(const Op& op, std::span<const ResourceId> held) const;
  /// Of computation whose first resource is no device.
  [[nodiscard]] RowKind kind_beside_device(const Op& op, std::span<const ResourceId> held) const;

  /// Outcome, version, slice and request.
  void add_extras(TimelineRow& row, std::size_t i) const;

  const Plan* plan_;
  const OpTimes* times_;
  const OpResults* results_ = nullptr;
  const Numbering* numbers_;
  int iteration_;
};

/// The plan's own ids translated to the timeline's tables, which get the names that they lack.
[[nodiscard]] PlanRows::Numbering numbering_in(Timeline& timeline, const Plan& plan);

/// "all_reduce of chunk 3": the name of a collective in traces; of several such groups of ranks
/// "... of ranks 4, 6", those of all but the first.
[[nodiscard]] std::string name_of(const Plan& plan, std::size_t stepped);

/// Adds the rows of one iteration to `timeline` (its name tables are extended as needed), for the
/// ops of all ranks or of one. Shared by sim and runtime, so that rows join by op id.
void append_rows(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration);
void append_rows(Timeline& timeline, const Plan& plan, const OpResults& results, int iteration);
void append_rows(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration,
                 Rank only);
void append_rows(Timeline& timeline, const Plan& plan, const OpResults& results, int iteration,
                 Rank only);

/// Factor on the duration of a block in one iteration: seeded noise (normal, cut at 0.1) times the
/// device's straggler factor. 1 where the scenario gives neither.
[[nodiscard]] double block_time_factor(const Run& run, DeviceId device, OpId op, int iteration);

/// The same of an op of a plan, drawn as PlanExtras::noise_ids say.
[[nodiscard]] double block_time_factor(const Plan& plan, const Run& run, OpId op, int iteration);

/// The plan with the block times of the run's slow devices (Run::stragglers). Orders and turns stay
/// what they are: simulated, it says what a schedule takes that absorbs stragglers by being timed
/// anew (Atlas section 4.4), and what ranks should measure. Noise is left out.
[[nodiscard]] Plan with_stragglers(Plan plan, const Run& run);

/// The plan with the block times that the run's noise and slow devices give them in an iteration,
/// which no one knows before: optional ops are judged by what was announced.
[[nodiscard]] Plan with_noise(Plan plan, const Run& run, int iteration);

/// How much one resource was used in an iteration.
struct ResourceUse {
  std::string name;
  ResourceKind kind = ResourceKind::device;
  Duration busy{};        ///< sum of all holds; over capacity * makespan it is the occupancy
  std::size_t holds = 0;  ///< ops that held it, those that took no time included
};

/// The occupancy of every resource of the plan, in the plan's order.
[[nodiscard]] std::vector<ResourceUse> occupancy(const Plan& plan, const OpTimes& times);

inline RowKind PlanRows::kind_of(const Op& op, std::span<const ResourceId> held) const {
  switch (op.kind) {
    case OpKind::compute:
      if (held.empty() || plan_->resources[index(held.front())].kind == ResourceKind::device)
        return row_kind_of(op.block_kind);
      return kind_beside_device(op, held);
    case OpKind::send: return RowKind::send;
    case OpKind::recv: return RowKind::recv;
    case OpKind::collective: return row_kind_of(op.collective);
  }
  return {};
}

// Here, so that a caller that reads three fields makes three.
inline TimelineRow PlanRows::operator[](std::size_t i) const {
  const OpId id{static_cast<std::uint32_t>(i)};
  const Op& op = plan_->ops[i];
  const OpTime& time = (*times_)[i];
  const Rank rank = plan_->rank_of(id);
  const RankInfo& info = plan_->ranks[index(rank)];
  const auto resources = plan_->resources_of(id);
  const auto numbered = [this](std::vector<std::int32_t> Numbering::*table, std::size_t own) {
    return numbers_ == nullptr ? static_cast<std::int32_t>(own) : (numbers_->*table)[own];
  };
  TimelineRow row;
  row.schedule = numbers_ == nullptr ? 0 : numbers_->schedule;
  row.iteration = iteration_;
  row.op = static_cast<std::int64_t>(i);
  row.rank = static_cast<std::int32_t>(rank);
  row.replica = number(info.replica);
  row.device = number(info.device);
  row.datacenter = numbered(&Numbering::datacenter, index(info.datacenter));
  row.lane = numbered(&Numbering::lane, index(op.lane));
  row.resource = resources.empty() ? -1 : numbered(&Numbering::resource, index(resources.front()));
  row.kind = kind_of(op, resources);
  if (is_step(op)) [[unlikely]] {
    const std::size_t collective = stepped_of(op);
    row.chunk = plan_->stepped[collective].chunk;
    row.collective = numbered(&Numbering::collective, collective);
    row.step = op.microbatch;
    row.owner =
        number(plan_->ranks[index(plan_->stepped[collective].collective.members.front())].replica);
    row.level = static_cast<std::int32_t>(plan_->level_of(id));
  } else {
    row.chunk = op.chunk;
    row.microbatch = op.microbatch;
    row.owner = number(plan_->owner_of(id));
  }
  if (const OperatorStep* const step = plan_->operator_of(op)) [[unlikely]]
    set_operator(row, *step, op.chunk);
  row.part = op.part;
  row.parts = op.parts;
  row.peer = op.peer == kNone<Rank> ? -1 : static_cast<std::int32_t>(op.peer);
  row.leg = op.leg;
  row.piece = op.piece;
  row.pieces = op.pieces;
  row.size_bytes = op.size.count();
  row.planned_ns = op.duration.count();
  row.ready_ns = time.ready.count();
  row.start_ns = time.start.count();
  row.end_ns = time.end.count();
  row.bound_by =
      time.bound_by == kNone<OpId> ? -1 : static_cast<std::int64_t>(index(time.bound_by));
  row.bound_kind = time.bound_kind;
  if (results_ != nullptr || !plan_->extras.slices.empty() || !plan_->extras.served.empty())
      [[unlikely]]
    add_extras(row, i);
  return row;
}

}  // namespace longhaul::plan
