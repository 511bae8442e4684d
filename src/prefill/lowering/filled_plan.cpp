#include "prefill/lowering/filled_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/plan_draft.hpp"
#include "plan/rewrite/draft.hpp"

namespace longhaul::prefill {
namespace {

using Handle = plan::Draft::Handle;

const Pipeline& pipeline_of(const Served& served, const Decision& decision) {
  const auto& pipelines = served.serving.pipelines;
  const auto found = std::ranges::lower_bound(pipelines, decision.pipeline, {}, &Pipeline::number);
  if (found == pipelines.end() || found->number != decision.pipeline)
    fail("request {} is placed on pipeline {} (none of those that serve {}). Place it anew.",
         decision.request, decision.pipeline, served.model.name);
  return *found;
}

/// A bubble's ends as ops of its rank's compute lane; nullopt at the ends of the plan.
struct BubbleEnds {
  std::optional<OpId> opened_by, closed_by;
};

class PlanFilling {
public:
  PlanFilling(const Plan& training, const OpTimes& times, const std::vector<Served>& served,
              const std::vector<Decision>& decisions)
      : training_{training},
        times_{times},
        served_{served},
        decisions_{decisions},
        draft_{plan::thaw(with_empty_set(training))} {
    compute_.resize(training.ranks.size(), kNone<LaneId>);
    for (std::size_t i = 0; i < training.lanes.size(); ++i) {
      LaneId& first = compute_[index(training.lanes[i].rank)];
      if (training.lanes[i].kind == OpKind::compute && first == kNone<LaneId>)
        first = LaneId{static_cast<std::uint32_t>(i)};
    }
  }

  [[nodiscard]] FilledPlan run(Duration end, Manners manners) {
    stages_ = placed_stages(served_, decisions_);
    handles_.resize(stages_.size());
    for (const std::size_t i : in_order_of_start()) add_stage(i, manners);
    for (const std::size_t i : in_order_of_start())
      if (stages_[i].stage > 0) add_hop(i);
    FilledPlan filled{plan::freeze(draft_), {}, {}};
    place_lanes();
    number(filled);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const OpId op = id_of(handles_[i], filled.plan);
      filled.stages.push_back({stages_[i], op});
      add_window(filled.plan, i, op, end, manners);
      serve(filled.plan, i, op);
    }
    for (const auto& [handle, stage] : sides_)
      serve(filled.plan, stage, id_of(handle, filled.plan));
    std::ranges::sort(filled.plan.extras.served, {}, &plan::OpServed::op);
    return filled;
  }

private:
  /// A set of nothing, for messages that hold no link, is the last one.
  [[nodiscard]] static Plan with_empty_set(Plan plan) {
    plan.set_begin.push_back(plan.set_begin.back());
    return plan;
  }

  /// Lanes are orders: what starts first stands first.
  [[nodiscard]] std::vector<std::size_t> in_order_of_start() const {
    std::vector<std::size_t> order(stages_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return stages_[i].start; });
    return order;
  }

  [[nodiscard]] BubbleEnds ends_of(const PlacedStage& stage) const {
    const Lane& lane = training_.lanes[index(compute_[index(stage.rank)])];
    const auto first = times_.begin() + static_cast<std::ptrdiff_t>(index(lane.first));
    const auto next = std::partition_point(first, first + lane.count, [&](const OpTime& time) {
      return time.end <= stage.start && time.start <= stage.start;
    });
    const auto id = [&](auto at) { return OpId{static_cast<std::uint32_t>(at - times_.begin())}; };
    BubbleEnds ends;
    if (next != first) ends.opened_by = id(next - 1);
    if (next != first + lane.count) ends.closed_by = id(next);
    return ends;
  }

  LaneId lane_of(OpKind kind, Rank rank, Rank peer) {
    const auto [found, is_new] = lanes_.try_emplace({kind, rank, peer}, LaneId{});
    if (!is_new) return found->second;
    std::string name = "prefill";
    if (kind == OpKind::send) name = fmt::format("prefill>{}", index(peer));
    if (kind == OpKind::recv) name = fmt::format("prefill<{}", index(peer));
    return found->second = draft_.add_lane(std::move(name), kind, rank, peer);
  }

  Handle append(LaneId lane, const Op& op) {
    const Handle handle = draft_.insert(lane, draft_.lane(lane).size(), op);
    places_.resize(std::max(places_.size(), index_of(handle) + 1));
    places_[index_of(handle)] = static_cast<std::uint32_t>(draft_.lane(lane).size() - 1);
    return handle;
  }
  [[nodiscard]] static std::size_t index_of(Handle handle) {
    return static_cast<std::size_t>(handle);
  }
  [[nodiscard]] OpId id_of(Handle handle, const Plan& plan) const {
    const Lane& lane = plan.lanes[lane_places_[index(draft_.op(handle).lane)]];
    return OpId{static_cast<std::uint32_t>(index(lane.first)) + places_[index_of(handle)]};
  }

  [[nodiscard]] Op op_of(const PlacedStage& stage) const {
    Op op;
    op.chunk = ChunkId{stage.stage};
    op.microbatch = MicrobatchId{static_cast<std::int32_t>(decisions_[stage.decision].request)};
    return op;
  }

  void add_stage(std::size_t i, Manners manners) {
    const PlacedStage& stage = stages_[i];
    const Lane& blocks = training_.lanes[index(compute_[index(stage.rank)])];
    LONGHAUL_ASSERT(blocks.count > 0, "rank {} has no block", index(stage.rank));
    Op op = op_of(stage);
    op.kind = OpKind::compute;
    op.resources = training_.op(blocks.first).resources;
    op.duration = stage.duration;
    handles_[i] = append(lane_of(OpKind::compute, stage.rank, kNone<Rank>), op);
    const auto opened_by = ends_of(stage).opened_by;
    if (opened_by && manners == Manners::gives_way)
      draft_.add_after(handles_[i], Handle{static_cast<std::uint32_t>(index(*opened_by))});
  }

  /// The message from the stage before.
  void add_hop(std::size_t i) {
    const PlacedStage &to = stages_[i], &from = stages_[i - 1];
    const Served& by = served_[decisions_[to.decision].model];
    Op op = op_of(from);
    op.resources = ResourceSetId{static_cast<std::uint32_t>(training_.set_begin.size() - 1)};
    if (by.model.dimensions)
      op.size = Bytes{2 * decisions_[to.decision].tokens * by.model.dimensions->hidden};
    op.kind = OpKind::send;
    const Handle send = append(lane_of(OpKind::send, from.rank, to.rank), op);
    op.kind = OpKind::recv;
    op.duration = by.model.hop;
    const Handle recv = append(lane_of(OpKind::recv, to.rank, from.rank), op);
    draft_.join(send, recv);
    draft_.add_after(send, handles_[i - 1]);
    draft_.add_after(handles_[i], recv);
    sides_.emplace_back(send, i);
    sides_.emplace_back(recv, i);
  }

  /// Where lanes of the draft stand in the plan: a rank's lie together.
  void place_lanes() {
    const std::vector<Lane>& lanes = draft_.frame().lanes;
    std::vector<std::size_t> first(training_.ranks.size(), lanes.size()), order(lanes.size());
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      order[l] = l;
      first[index(lanes[l].rank)] = std::min(first[index(lanes[l].rank)], l);
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t l) { return first[index(lanes[l].rank)]; });
    lane_places_.resize(lanes.size());
    for (std::size_t l = 0; l < lanes.size(); ++l) lane_places_[order[l]] = l;
  }

  void number(FilledPlan& filled) const {
    filled.training.resize(training_.ops.size());
    for (std::size_t l = 0; l < training_.lanes.size(); ++l)
      for (std::uint32_t k = 0; k < training_.lanes[l].count; ++k)
        filled.training[index(training_.lanes[l].first) + k] =
            OpId{static_cast<std::uint32_t>(index(filled.plan.lanes[lane_places_[l]].first)) + k};
  }

  void add_window(Plan& plan, std::size_t i, OpId op, Duration end, Manners manners) const {
    const PlacedStage& stage = stages_[i];
    if (manners == Manners::careless) {
      plan.extras.windows.push_back({op, Duration{}, plan::kNoDeadline});
      return;
    }
    LONGHAUL_ASSERT(stage.end() <= end, "stage {} of request {} ends at {} ns, the plan at {} ns",
                    stage.stage, decisions_[stage.decision].request, stage.end().count(),
                    end.count());
    const auto closed_by = ends_of(stage).closed_by;
    const Duration deadline = closed_by ? times_[index(*closed_by)].start : end;
    plan.extras.windows.push_back({op, stage.start, std::max(deadline, stage.end())});
  }

  void serve(Plan& plan, std::size_t i, OpId op) const {
    const Decision& decision = decisions_[stages_[i].decision];
    plan.extras.served.push_back({op, static_cast<std::int32_t>(decision.request),
                                  static_cast<std::int32_t>(decision.tokens)});
  }

  const Plan& training_;
  const OpTimes& times_;
  const std::vector<Served>& served_;
  const std::vector<Decision>& decisions_;
  plan::Draft draft_;
  std::vector<LaneId> compute_;  ///< by rank: of its blocks
  std::vector<PlacedStage> stages_;
  std::vector<Handle> handles_;           ///< by stage
  std::vector<std::uint32_t> places_;     ///< by handle, of ops that were added: on their lanes
  std::vector<std::size_t> lane_places_;  ///< by lane of the draft: in the plan
  std::map<std::tuple<OpKind, Rank, Rank>, LaneId> lanes_;
  std::vector<std::pair<Handle, std::size_t>> sides_;  ///< of messages, and the stage they bring to
};

}  // namespace

std::vector<PlacedStage> placed_stages(const std::vector<Served>& served,
                                       const std::vector<Decision>& decisions) {
  std::vector<PlacedStage> stages;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Decision& decision = decisions[i];
    if (!decision.is_done()) continue;
    if (!decision.passes.empty())
      fail(
          "request {} is computed in chunks or shares a pass (plans know whole prompts). Leave "
          "chunk "
          "and batch out.",
          decision.request);
    const Served& by = served[decision.model];
    const Pipeline& pipeline = pipeline_of(by, decision);
    Duration start = decision.start;
    for (int stage = 0; stage < by.model.stages; ++stage) {
      const Duration takes = by.model.stage_time(decision.compute, stage);
      stages.push_back({i, stage, Rank{pipeline.ranks[to_size(stage)]}, start, takes});
      start += takes + by.model.hop;
    }
  }
  return stages;
}

FilledPlan fill_plan(const Plan& training, const OpTimes& times, Duration end,
                     const std::vector<Served>& served, const std::vector<Decision>& decisions,
                     Manners manners) {
  return PlanFilling{training, times, served, decisions}.run(end, manners);
}

}  // namespace longhaul::prefill
