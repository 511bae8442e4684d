#include "plan/rewrite/with_operators.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>

#include "base/error.hpp"
#include "plan/operators/operator_lists_builder.hpp"
#include "plan/rewrite/renumber.hpp"

namespace longhaul::plan {
namespace {

/// The weights of one stage on one rank, and the ops that sum their gradients there.
struct Bucket {
  ChunkId chunk{};  ///< the device's first of the stage
  std::vector<OpId> after;
};

/// Tasks beside the device have no operators.
bool holds_device(const Plan& plan, const Op& op) {
  const auto held = plan.resources_of(OpId{static_cast<std::uint32_t>(&op - plan.ops.data())});
  return held.empty() || plan.resources[index(held.front())].kind == ResourceKind::device;
}

/// The buckets of every rank, in the order of their steps.
class Buckets {
public:
  Buckets(const Plan& plan, const Schedule& schedule)
      : plan_{plan},
        schedule_{schedule},
        of_rank_(plan.ranks.size()),
        passed_on_(plan.ops.size(), false) {
    for (std::size_t c = 0; c < plan.stepped.size(); ++c)
      if (!is_before_forward(plan.stepped[c].collective.kind)) add_messages(c);
    for (const std::vector<OpId>& members : plan.collectives)
      if (!is_before_forward(plan.op(members.front()).collective)) add_members(members);
    for (std::size_t rank = 0; rank < of_rank_.size(); ++rank) add_rest(rank);
  }
  [[nodiscard]] const std::vector<Bucket>& of(Rank rank) const { return of_rank_[index(rank)]; }

private:
  [[nodiscard]] Bucket& bucket(Rank rank, StageId stage) {
    std::vector<Bucket>& mine = of_rank_[index(rank)];
    const auto known = std::ranges::find_if(
        mine, [&](const Bucket& each) { return schedule_.stage_of(each.chunk) == stage; });
    if (known != mine.end()) return *known;
    const std::vector<ChunkId> chunks = chunks_on(schedule_, plan_.ranks[index(rank)].device);
    mine.push_back({*std::ranges::find(chunks, stage,
                                       [&](ChunkId chunk) { return schedule_.stage_of(chunk); }),
                    {}});
    return mine.back();
  }

  /// A rank has its sums when the last receives have ended: those that none of its sends of the
  /// collective waits for.
  void add_messages(std::size_t collective) {
    const SteppedCollective& each = plan_.stepped[collective];
    const StageId stage = schedule_.stage_of(each.chunk);
    for (const OpId send : each.sends) {
      for (const OpId before : plan_.after_of(send)) {
        const Op& op = plan_.op(before);
        if (is_step(op) && stepped_of(op) == collective) passed_on_[index(before)] = true;
      }
    }
    for (const Rank member : each.collective.members) (void)bucket(member, stage);
    for (const OpId receive : each.receives)
      if (!passed_on_[index(receive)])
        bucket(plan_.rank_of(receive), stage).after.push_back(receive);
  }

  void add_members(const std::vector<OpId>& members) {
    for (const OpId member : members)
      bucket(plan_.rank_of(member), schedule_.stage_of(plan_.op(member).chunk))
          .after.push_back(member);
  }

  /// Stages that are held once: the last one's gradients are the first.
  void add_rest(std::size_t rank) {
    const std::vector<ChunkId> chunks = chunks_on(schedule_, plan_.ranks[rank].device);
    for (const ChunkId chunk : chunks | std::views::reverse)
      (void)bucket(Rank{static_cast<std::int32_t>(rank)}, schedule_.stage_of(chunk));
  }

  const Plan& plan_;
  const Schedule& schedule_;
  std::vector<std::vector<Bucket>> of_rank_;
  std::vector<bool> passed_on_;  ///< receives of a collective, by its own sends
};

/// The plan with ops at the ends of its compute lanes.
class StepsAdded {
public:
  StepsAdded(const Plan& plan, const Schedule& schedule, const Scenario& scenario)
      : plan_{plan}, schedule_{schedule}, scenario_{scenario}, buckets_{plan, schedule} {
    std::uint32_t added = 0;
    for (const Lane& lane : plan.lanes) {
      shift_.push_back(added);
      if (computes(lane)) added += static_cast<std::uint32_t>(buckets_.of(lane.rank).size());
    }
    added_ = added;
  }

  [[nodiscard]] Plan run() const {
    const auto id_of = [&](OpId id) { return moved(id); };
    Plan out = renumbered_frame(plan_, id_of);
    for (const OpId before : plan_.after) out.after.push_back(moved(before));
    out.ops.reserve(plan_.ops.size() + added_);
    for (std::size_t l = 0; l < plan_.lanes.size(); ++l) {
      const Lane& lane = plan_.lanes[l];
      out.lanes[l].first = OpId{static_cast<std::uint32_t>(out.ops.size())};
      for (std::size_t i = index(lane.first); i < index(lane.first) + lane.count; ++i)
        out.ops.push_back(renumbered(plan_.ops[i], id_of, id_of));
      if (computes(lane)) add_steps(lane, out);
      out.lanes[l].count = static_cast<std::uint32_t>(out.ops.size() - index(out.lanes[l].first));
    }
    return out;
  }

private:
  /// A rank without blocks has no gradients.
  [[nodiscard]] static bool computes(const Lane& lane) {
    return lane.kind == OpKind::compute && lane.count > 0;
  }

  [[nodiscard]] OpId moved(OpId id) const {
    return OpId{static_cast<std::uint32_t>(index(id)) + shift_[index(plan_.op(id).lane)]};
  }

  void add_steps(const Lane& lane, Plan& out) const {
    const Op& like = plan_.op(lane.first);
    const auto device = index(plan_.ranks[index(lane.rank)].device);
    const ReplicaId replica = plan_.ranks[index(lane.rank)].replica;
    const std::vector<Duration>& times = scenario_.costs_of(replica).optimizer;
    for (const Bucket& bucket : buckets_.of(lane.rank)) {
      Op op;
      op.block_kind = BlockKind::W;
      op.chunk = bucket.chunk;
      op.lane = like.lane;
      op.resources = like.resources;
      const auto [of, place] = shares_[bucket.chunk];
      if (!times.empty()) op.duration = share(times[device], of, place);
      for (const OpId before : bucket.after) out.add_after(op, moved(before));
      out.ops.push_back(op);
    }
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const Scenario& scenario_;
  Buckets buckets_;
  IndexedVector<ChunkId, ChunkShare> shares_ = chunk_shares(schedule_);
  std::vector<std::uint32_t> shift_;  ///< of each lane's ops
  std::uint32_t added_ = 0;
};

}  // namespace

Plan with_optimizer_steps(const Plan& plan, const Schedule& schedule, const Scenario& scenario) {
  return StepsAdded{plan, schedule, scenario}.run();
}

Result<Plan> with_operators(Plan plan, const Schedule& schedule, const Scenario& scenario,
                            Granularity below) {
  if (!scenario.operators.known())
    return refused(
        "nothing says which operators the blocks of {} have (the scenario has neither [model] nor "
        "[[operator]]). Add one of them, or use --granularity block.",
        scenario.name);
  if (scenario.costs.optimizer.empty()) plan = with_optimizer_steps(plan, schedule, scenario);
  OperatorListsBuilder builder{schedule, scenario,
                               below == Granularity::tasks ? Below::tasks : Below::operators};
  for (Op& op : plan.ops) {
    if (op.kind != OpKind::compute || !holds_device(plan, op)) continue;
    const OperatorListId list =
        is_optimizer_step(op)
            ? builder.list_of("optimizer", op.duration)
            : builder.list_of(op.block(),
                              plan.ranks[index(plan.lanes[index(op.lane)].rank)].replica);
    op.match = static_cast<std::uint32_t>(index(list));
  }
  plan.operators = std::make_shared<const OperatorLists>(std::move(builder).take());
  return plan;
}

}  // namespace longhaul::plan
