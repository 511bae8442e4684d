#include "prefill/lowering/filled_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "prefill/lowering/expected_deadlines.hpp"
#include "prefill/lowering/held_memory.hpp"
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
    leads_.resize(stages_.size(), true);
    add_interfaces();
    for (const std::size_t i : in_order_of_start()) add_stage(i);
    for (const std::size_t i : in_order_of_start())
      if (stages_[i].stage > 0) add_hop(i);
    for (const auto& [rank, tokens] : decode_) (void)token_lane(rank);  // ascending, as ranks are
    count_slices();
    for (const std::size_t i : in_order_of_start())
      if (is_sent(i)) send_kv(i);
    for (std::size_t i = 0; i < stages_.size(); ++i) add_token(i);
    FilledPlan filled{additions_.make(), {}, {}, {}, {}};
    filled.training = additions_.training_ids();
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      filled.stages.push_back(
          {stages_[i], additions_.id(parts_[i].back()), additions_.id(parts_[i].front())});
      if (!leads_[i]) continue;
      add_window(filled, i, end);
      for (const Handle part : parts_[i])
        serve(filled.plan, i, additions_.id(part), stages_[i].in_pass);
    }
    finish(filled);
    if (options_.graph && options_.manners == Manners::gives_way) move_deadlines(filled);
    return filled;
  }

private:
  /// A message beside the GPUs: both sides.
  struct Message {
    std::size_t stage = 0;
    Handle send{}, recv{};
    bool is_slice = false;
    std::int64_t first = 0, bytes = 0;   ///< of a slice
    std::int32_t slice = 0, slices = 1;  ///< of the prompt's on this GPU
  };
  /// Of a prompt on a GPU.
  struct Slices {
    std::int32_t count = 0, sent = 0;
    std::optional<Handle> last{};  ///< send
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
  [[nodiscard]] bool is_sent(std::size_t i) const { return options_.kv && sends_kv(model_of(i)); }

  void add_interfaces() {
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!is_sent(i)) continue;
      const Rank rank = stages_[i].rank;
      if (!interfaces_.contains(rank)) interfaces_.emplace(rank, additions_.interface_of(rank));
      decode_.try_emplace(additions_.decode_rank_of(rank));
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

  /// Of prompts that share a pass the first one's ops are those of all.
  void add_stage(std::size_t i) {
    const PlacedStage& stage = stages_[i];
    if (stage.in_pass > stage.tokens) {
      const auto [leader, is_new] = shared_.try_emplace({stage.rank, stage.start}, i);
      leads_[i] = is_new;
      if (!is_new) parts_[i] = parts_[leader->second];
    }
    if (leads_[i]) append_parts(i);
    if (stage.pass > 0) additions_.after(parts_[i].front(), parts_[pass_before(i)].back());
  }

  void append_parts(std::size_t i) {
    const PlacedStage& stage = stages_[i];
    Op op = op_of(stage);
    op.kind = OpKind::compute;
    op.resources = additions_.device_of(stage.rank);
    const bool by_layer = is_sent(i) && options_.kv == KvSending::layerwise;
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

  /// The same stage in the pass before.
  [[nodiscard]] std::size_t pass_before(std::size_t i) const {
    return i - to_size(model_of(i).stages);
  }
  [[nodiscard]] bool is_last_pass(std::size_t i) const {
    const std::size_t next = i + to_size(model_of(i).stages);
    return next >= stages_.size() || stages_[next].decision != stages_[i].decision;
  }

  /// The message from the stage before.
  void add_hop(std::size_t i) {
    const PlacedStage &to = stages_[i], &from = stages_[i - 1];
    Op op = op_of(from);
    if (model_of(i).dimensions) op.size = Bytes{2 * to.tokens * model_of(i).dimensions->hidden};
    const auto [send, recv] =
        additions_.append_message("prefill", from.rank, to.rank, op, {.latency = model_of(i).hop});
    additions_.after(send, parts_[i - 1].back());
    additions_.after(parts_[i].front(), recv);
    messages_.push_back({i, send, recv});
  }

  [[nodiscard]] std::vector<KvSlice> slices_of(std::size_t i) const {
    return kv_slices(model_of(i), stages_[i].tokens, stages_[i].stage, *options_.kv);
  }
  void count_slices() {
    for (std::size_t i = 0; i < stages_.size(); ++i)
      if (is_sent(i))
        slices_[{stages_[i].decision, stages_[i].stage}].count +=
            static_cast<std::int32_t>(slices_of(i).size());
  }

  /// What leaves when this pass is computed: its own, or whole, with the last one, all.
  void send_kv(std::size_t i) {
    if (*options_.kv == KvSending::layerwise) return send_slices(i, i);
    if (!is_last_pass(i)) return;
    for (std::size_t pass = i - to_size(stages_[i].pass * model_of(i).stages); pass <= i;
         pass += to_size(model_of(i).stages))
      send_slices(pass, i);
  }

  /// Those of stage `i`, when `when` is computed.
  void send_slices(std::size_t i, std::size_t when) {
    const PlacedStage& stage = stages_[i];
    const DecodeLink& link = *model_of(i).decode;
    Slices& all = slices_[{stage.decision, stage.stage}];
    std::int64_t first = 0;
    for (const KvSlice& slice : slices_of(i)) {
      Op op = op_of(stage);
      op.size = slice.bytes;
      const auto [send, recv] = additions_.append_message(
          "kv", stage.rank, additions_.decode_rank_of(stage.rank), op,
          {.latency = link.latency, .transfer = slice.takes, .holds = interfaces_.at(stage.rank)});
      additions_.after(send, parts_[when][to_size(slice.part)]);
      if (all.last) additions_.after(send, *all.last);
      all.last = send;
      messages_.push_back({i, send, recv, true, first, slice.bytes.count(), all.sent++, all.count});
      received_[stage.decision].push_back(recv);
      first += slice.bytes.count();
    }
  }

  /// Of the prompt whose last stage this is.
  void add_token(std::size_t i) {
    const PlacedStage& stage = stages_[i];
    if (!is_sent(i) || stage.stage + 1 < model_of(i).stages || !is_last_pass(i)) return;
    const Rank rank = additions_.decode_rank_of(stage.rank);
    Op op = op_of(stage);
    op.kind = OpKind::compute;
    op.resources = decode_.at(rank);
    op.duration = model_of(i).decode->first_token;
    const Handle token = additions_.append(token_lane(rank), op);
    for (const Handle recv : received_.at(stage.decision)) additions_.after(token, recv);
    tokens_.emplace_back(i, token);
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

  /// As training's blocks are expected. Collectives end with their first member.
  void move_deadlines(FilledPlan& filled) const {
    const TrainingGraph& graph = *options_.graph;
    Closings closings{.graph = options_.graph};
    closings.training_of.assign(filled.plan.ops.size(), kNone<OpId>);
    std::unordered_map<OpId, std::size_t> place;
    for (const TrainingGraph::Node& node : graph.nodes()) {
      const auto heed = [&](OpId op) {
        closings.training_of[index(filled.training[index(op)])] = op;
      };
      heed(node.op);
      if (node.kind == OpKind::send) heed(node.receive);
    }
    for (std::int32_t rank = 0; rank < graph.gpus(); ++rank)
      for (std::size_t block = 0; block < graph.blocks(rank).size(); ++block)
        place[graph.nodes()[graph.blocks(rank)[block]].op] = block;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!leads_[i]) continue;
      const auto rank = static_cast<std::int32_t>(stages_[i].rank);
      const auto closed_by = ends_of(stages_[i]).closed_by;
      closings.of_stage[filled.stages[i].first] =
          closed_by ? Closings::Closing{rank, place.at(*closed_by), times_[index(*closed_by)].start}
                    : Closings::Closing{rank, graph.blocks(rank).size(), graph.makespan()};
    }
    if (options_.memory) add_holdings(closings, filled, served_, decisions_, options_);
    filled.plan.extras.deadlines = expected_deadlines(std::move(closings));
  }

  void serve(Plan& plan, std::size_t i, OpId op, std::int64_t tokens) const {
    const Decision& decision = decisions_[stages_[i].decision];
    plan.extras.served.push_back(
        {op, static_cast<std::int32_t>(decision.request), static_cast<std::int32_t>(tokens)});
  }

  /// What rows say of messages and tokens.
  void finish(FilledPlan& filled) const {
    Plan& plan = filled.plan;
    for (const Message& each : messages_) {
      const OpId send = additions_.id(each.send), recv = additions_.id(each.recv);
      filled.messages.push_back({each.stage, send, recv, each.is_slice, each.first, each.bytes});
      for (const OpId side : {send, recv}) {
        serve(plan, each.stage, side, stages_[each.stage].tokens);
        if (each.is_slice) plan.extras.slices.push_back({side, each.slice, each.slices});
      }
    }
    for (const auto& [stage, token] : tokens_) {
      filled.tokens.push_back({stages_[stage].decision, additions_.id(token)});
      serve(plan, stage, additions_.id(token), decisions_[stages_[stage].decision].tokens);
    }
    std::ranges::sort(plan.extras.served, {}, &plan::OpServed::op);
    std::ranges::sort(plan.extras.slices, {}, &plan::OpSlice::op);
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
  std::vector<std::vector<Handle>> parts_;                   ///< by stage
  std::vector<bool> leads_;                                  ///< by stage: are its ops its own?
  std::map<std::pair<Rank, Duration>, std::size_t> shared_;  ///< the first stage of a shared pass
  std::vector<Message> messages_;
  std::map<Rank, ResourceSetId> interfaces_;              ///< of GPUs that send keys and values
  std::map<Rank, ResourceSetId> decode_;                  ///< decode ranks: what first tokens hold
  std::map<std::pair<std::size_t, int>, Slices> slices_;  ///< by decision and stage
  std::map<std::size_t, std::vector<Handle>> received_;   ///< by decision: its slices
  std::vector<std::pair<std::size_t, Handle>> tokens_;    ///< and the stage that they follow
};

}  // namespace

std::vector<PlacedStage> placed_stages(const std::vector<Served>& served,
                                       const std::vector<Decision>& decisions) {
  std::vector<PlacedStage> stages;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Decision& decision = decisions[i];
    if (!decision.is_done()) continue;
    const Served& by = served[decision.model];
    const Pipeline& pipeline = pipeline_of(by, decision);
    std::vector<PlacedPass> passes = decision.passes;
    if (passes.empty())
      passes.push_back({decision.start, decision.compute, decision.tokens, decision.tokens});
    std::int64_t context = 0;
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      const PlacedPass& own = passes[pass];
      for (int stage = 0; stage < by.model.stages; ++stage)
        stages.push_back({i, stage, Rank{pipeline.ranks[to_size(stage)]},
                          own.start + stage_offset(by.model, own.time, stage),
                          by.model.stage_time(own.time, stage), static_cast<int>(pass), context,
                          own.tokens, own.in_pass});
      context += own.tokens;
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
