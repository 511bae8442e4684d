#include "prefill/lowering/filled_plan.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "prefill/lowering/plan_additions.hpp"

namespace longhaul::prefill {
namespace {

using Handle = PlanAdditions::Handle;

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
        additions_{training} {}

  [[nodiscard]] FilledPlan run(Duration end, Manners manners) {
    stages_ = placed_stages(served_, decisions_);
    handles_.resize(stages_.size());
    for (const std::size_t i : in_order_of_start()) add_stage(i, manners);
    for (const std::size_t i : in_order_of_start())
      if (stages_[i].stage > 0) add_hop(i);
    FilledPlan filled{additions_.make(), {}, {}};
    filled.training = additions_.training_ids();
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const OpId op = additions_.id(handles_[i]);
      filled.stages.push_back({stages_[i], op, op});
      add_window(filled.plan, i, op, end, manners);
      serve(filled.plan, i, op);
    }
    for (const auto& [handle, stage] : sides_) serve(filled.plan, stage, additions_.id(handle));
    std::ranges::sort(filled.plan.extras.served, {}, &plan::OpServed::op);
    return filled;
  }

private:
  /// Lanes are orders: what starts first stands first.
  [[nodiscard]] std::vector<std::size_t> in_order_of_start() const {
    std::vector<std::size_t> order(stages_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return stages_[i].start; });
    return order;
  }

  [[nodiscard]] BubbleEnds ends_of(const PlacedStage& stage) const {
    const Lane& lane = training_.lanes[index(additions_.blocks_of(stage.rank))];
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

  [[nodiscard]] Op op_of(const PlacedStage& stage) const {
    Op op;
    op.chunk = ChunkId{stage.stage};
    op.microbatch = MicrobatchId{static_cast<std::int32_t>(decisions_[stage.decision].request)};
    return op;
  }

  void add_stage(std::size_t i, Manners manners) {
    const PlacedStage& stage = stages_[i];
    Op op = op_of(stage);
    op.kind = OpKind::compute;
    op.resources = additions_.device_of(stage.rank);
    op.duration = stage.duration;
    handles_[i] = additions_.append(additions_.lane("prefill", OpKind::compute, stage.rank), op);
    const auto opened_by = ends_of(stage).opened_by;
    if (opened_by && manners == Manners::gives_way)
      additions_.after(handles_[i], PlanAdditions::of_training(*opened_by));
  }

  /// The message from the stage before.
  void add_hop(std::size_t i) {
    const PlacedStage &to = stages_[i], &from = stages_[i - 1];
    const Served& by = served_[decisions_[to.decision].model];
    Op op = op_of(from);
    if (by.model.dimensions)
      op.size = Bytes{2 * decisions_[to.decision].tokens * by.model.dimensions->hidden};
    const auto [send, recv] =
        additions_.append_message("prefill", from.rank, to.rank, op, by.model.hop);
    additions_.after(send, handles_[i - 1]);
    additions_.after(handles_[i], recv);
    sides_.emplace_back(send, i);
    sides_.emplace_back(recv, i);
  }

  void add_window(Plan& plan, std::size_t i, OpId op, Duration end, Manners manners) const {
    const PlacedStage& stage = stages_[i];
    if (manners == Manners::careless) {
      const Duration arrival = decisions_[stage.decision].arrival;
      plan.extras.windows.push_back({op, std::max(Duration{}, arrival), plan::kNoDeadline});
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
  PlanAdditions additions_;
  std::vector<PlacedStage> stages_;
  std::vector<Handle> handles_;                        ///< by stage
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
