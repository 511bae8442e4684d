#include "prefill/lowering/filled_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "prefill/lowering/plan_additions.hpp"
#include "prefill/prompt/memory_over_time.hpp"

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
              const std::vector<Decision>& decisions, const FillOptions& options)
      : training_{training},
        times_{times},
        served_{served},
        decisions_{decisions},
        options_{options},
        additions_{training} {}

  [[nodiscard]] FilledPlan run(Duration end) {
    stages_ = placed_stages(served_, decisions_);
    parts_.resize(stages_.size());
    add_interfaces();
    for (const std::size_t i : in_order_of_start()) add_stage(i);
    for (const std::size_t i : in_order_of_start())
      if (stages_[i].stage > 0) add_hop(i);
    for (const auto& [rank, tokens] : decode_) (void)token_lane(rank);  // ascending, as ranks are
    for (const std::size_t i : in_order_of_start())
      if (sends_kv(i)) send_kv(i);
    for (std::size_t i = 0; i < stages_.size(); ++i) add_token(i);
    FilledPlan filled{additions_.make(), {}, {}, {}};
    filled.training = additions_.training_ids();
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      filled.stages.push_back(
          {stages_[i], additions_.id(parts_[i].back()), additions_.id(parts_[i].front())});
      add_window(filled, i, end);
      for (const Handle part : parts_[i]) serve(filled.plan, i, additions_.id(part));
    }
    finish(filled);
    return filled;
  }

private:
  /// A slice of keys and values: both sides.
  struct Slice {
    Handle send{}, recv{};
    std::int32_t slice = 0, slices = 1;
  };

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

  [[nodiscard]] const ServedModel& model_of(std::size_t i) const {
    return served_[decisions_[stages_[i].decision].model].model;
  }
  [[nodiscard]] bool sends_kv(std::size_t i) const {
    return options_.kv && model_of(i).decode && model_of(i).dimensions;
  }

  [[nodiscard]] Rank decode_rank_of(Rank gpu) const {
    const DatacenterId own = training_.ranks[index(gpu)].datacenter;
    for (std::size_t rank = 0; rank < training_.ranks.size(); ++rank)
      if (training_.ranks[rank].role == RankRole::decode && training_.ranks[rank].datacenter == own)
        return Rank{static_cast<std::int32_t>(rank)};
    fail(
        "rank {} serves and its datacenter has no decode rank (keys and values stay in their "
        "datacenter). Add [[service]] with role = \"decode\" there.",
        index(gpu));
  }

  void add_interfaces() {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!sends_kv(i)) continue;
      const Rank rank = stages_[i].rank;
      if (!interfaces_.contains(rank)) interfaces_.emplace(rank, additions_.interface_of(rank));
      decode_.try_emplace(decode_rank_of(rank));
    }
    int slots = 1;
    for (const Served& each : served_)
      if (each.model.decode) slots = std::max(slots, each.model.decode->slots);
    for (auto& [rank, tokens] : decode_)
      tokens = additions_.add_resource(fmt::format("decode {}", index(rank)), ResourceKind::workers,
                                       slots);
  }

  [[nodiscard]] LaneId token_lane(Rank rank) {
    return additions_.lane("decode", OpKind::compute, rank);
  }

  [[nodiscard]] Op op_of(const PlacedStage& stage) const {
    Op op;
    op.chunk = ChunkId{stage.stage};
    op.microbatch = MicrobatchId{static_cast<std::int32_t>(decisions_[stage.decision].request)};
    return op;
  }

  void add_stage(std::size_t i) {
    const PlacedStage& stage = stages_[i];
    Op op = op_of(stage);
    op.kind = OpKind::compute;
    op.resources = additions_.device_of(stage.rank);
    const bool by_layer = sends_kv(i) && options_.kv == KvSending::layerwise;
    const int parts = by_layer ? std::max(1, layers_of_stage(model_of(i), stage.stage)) : 1;
    const LaneId lane = additions_.lane("prefill", OpKind::compute, stage.rank);
    for (int part = 0; part < parts; ++part) {
      op.duration = stage.duration * (part + 1) / parts - stage.duration * part / parts;
      const Handle handle = additions_.append(lane, op);
      if (part > 0) additions_.after(handle, parts_[i].back());
      parts_[i].push_back(handle);
    }
    const auto opened_by = ends_of(stage).opened_by;
    if (opened_by && options_.manners == Manners::gives_way)
      additions_.after(parts_[i].front(), PlanAdditions::of_training(*opened_by));
  }

  /// The message from the stage before.
  void add_hop(std::size_t i) {
    const PlacedStage &to = stages_[i], &from = stages_[i - 1];
    Op op = op_of(from);
    if (model_of(i).dimensions)
      op.size = Bytes{2 * decisions_[to.decision].tokens * model_of(i).dimensions->hidden};
    const auto [send, recv] =
        additions_.append_message("prefill", from.rank, to.rank, op, {.latency = model_of(i).hop});
    additions_.after(send, parts_[i - 1].back());
    additions_.after(parts_[i].front(), recv);
    sides_.emplace_back(send, i);
    sides_.emplace_back(recv, i);
  }

  void send_kv(std::size_t i) {
    const PlacedStage& stage = stages_[i];
    const DecodeLink& link = *model_of(i).decode;
    const auto slices =
        kv_slices(model_of(i), decisions_[stage.decision].tokens, stage.stage, *options_.kv);
    const auto count = static_cast<std::int32_t>(slices.size());
    std::optional<Handle> before;
    for (std::int32_t k = 0; k < count; ++k) {
      const KvSlice& slice = slices[at(k)];
      Op op = op_of(stage);
      op.size = slice.bytes;
      const auto [send, recv] = additions_.append_message(
          "kv", stage.rank, decode_rank_of(stage.rank), op,
          {.latency = link.latency, .transfer = slice.takes, .holds = interfaces_.at(stage.rank)});
      additions_.after(send, parts_[i][to_size(slice.part)]);
      if (before) additions_.after(send, *before);
      before = send;
      slices_[stages_[i].decision].push_back({send, recv, k, count});
      sides_.emplace_back(send, i);
      sides_.emplace_back(recv, i);
    }
  }

  /// Of the prompt whose last stage this is.
  void add_token(std::size_t i) {
    const PlacedStage& stage = stages_[i];
    if (!sends_kv(i) || stage.stage + 1 < model_of(i).stages) return;
    const Rank rank = decode_rank_of(stage.rank);
    Op op = op_of(stage);
    op.kind = OpKind::compute;
    op.resources = decode_.at(rank);
    op.duration = model_of(i).decode->first_token;
    const Handle token = additions_.append(token_lane(rank), op);
    for (const Slice& slice : slices_.at(stage.decision)) additions_.after(token, slice.recv);
    sides_.emplace_back(token, i);
    tokens_.emplace_back(stage.decision, token);
  }

  void add_window(FilledPlan& filled, std::size_t i, Duration end) const {
    const PlacedStage& stage = stages_[i];
    const OpId first = filled.stages[i].first;
    auto& windows = filled.plan.extras.windows;
    if (options_.manners == Manners::careless) {
      const Duration arrival = decisions_[stage.decision].arrival;
      windows.push_back({first, std::max(Duration{}, arrival), plan::kNoDeadline});
      return;
    }
    LONGHAUL_ASSERT(stage.end() <= end, "stage {} of request {} ends at {} ns, the plan at {} ns",
                    stage.stage, decisions_[stage.decision].request, stage.end().count(),
                    end.count());
    const auto closed_by = ends_of(stage).closed_by;
    const Duration deadline = closed_by ? times_[index(*closed_by)].start : end;
    // What is left after the first part must end by then, too.
    const Duration rest = stage.duration - filled.plan.op(first).duration;
    windows.push_back({first, stage.start, std::max(deadline, stage.end()) - rest});
  }

  void serve(Plan& plan, std::size_t i, OpId op) const {
    const Decision& decision = decisions_[stages_[i].decision];
    plan.extras.served.push_back({op, static_cast<std::int32_t>(decision.request),
                                  static_cast<std::int32_t>(decision.tokens)});
  }

  /// What rows say of messages and tokens.
  void finish(FilledPlan& filled) const {
    Plan& plan = filled.plan;
    for (const auto& [handle, stage] : sides_) serve(plan, stage, additions_.id(handle));
    std::ranges::sort(plan.extras.served, {}, &plan::OpServed::op);
    for (const auto& [decision, slices] : slices_)
      for (const Slice& each : slices)
        for (const Handle side : {each.send, each.recv})
          plan.extras.slices.push_back({additions_.id(side), each.slice, each.slices});
    std::ranges::sort(plan.extras.slices, {}, &plan::OpSlice::op);
    for (const auto& [decision, token] : tokens_)
      filled.tokens.push_back({decision, additions_.id(token)});
    // Rows name a replica and a device, of which a decode rank has neither.
    for (const auto& [rank, tokens] : decode_) {
      plan.ranks[index(rank)].replica = ReplicaId{0};
      plan.ranks[index(rank)].device = DeviceId{0};
    }
  }

  const Plan& training_;
  const OpTimes& times_;
  const std::vector<Served>& served_;
  const std::vector<Decision>& decisions_;
  const FillOptions& options_;
  PlanAdditions additions_;
  std::vector<PlacedStage> stages_;
  std::vector<std::vector<Handle>> parts_;             ///< by stage
  std::vector<std::pair<Handle, std::size_t>> sides_;  ///< beside the GPUs, and the stage it is of
  std::map<Rank, ResourceSetId> interfaces_;           ///< of GPUs that send keys and values
  std::map<Rank, ResourceSetId> decode_;               ///< decode ranks: what first tokens hold
  std::map<std::size_t, std::vector<Slice>> slices_;   ///< by decision
  std::vector<std::pair<std::size_t, Handle>> tokens_;
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
                     const FillOptions& options) {
  return PlanFilling{training, times, served, decisions, options}.run(end);
}

}  // namespace longhaul::prefill
