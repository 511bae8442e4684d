#include "prefill/live/live_plan.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "prefill/lowering/plan_additions.hpp"
#include "prefill/prompt/memory_over_time.hpp"

namespace longhaul::prefill {
namespace {

/// First tokens that a decode rank computes beside each other.
constexpr int kMostTokensAtOnce = 4;

class SlotLowering {
public:
  SlotLowering(const Plan& training, const std::vector<Served>& served,
               const LivePlanOptions& options)
      : served_{served}, options_{options}, additions_{training} {
    live_.slots = options.slots;
    for (std::size_t model = 0; model < served.size(); ++model)
      for (const Pipeline& pipeline : served[model].serving.pipelines)
        live_.pipelines.push_back(
            {model, pipeline, training.ranks[at(pipeline.ranks.front())].datacenter});
    decides_ = additions_.add_resource("controller", ResourceKind::workers);
    live_.sending = options.kv.value_or(KvSending::layerwise);
    add_interfaces();
  }

  [[nodiscard]] LivePlan run() {
    for (std::int32_t p = 0; p < std::ssize(live_.pipelines); ++p)
      for (std::int32_t slot = 0; slot < live_.slots; ++slot) add_slot(p, slot);
    add_answers();
    add_decode_lanes();
    for (const auto& [rank, sender] : senders_) add_slices(rank, sender);
    live_.plan = additions_.make();
    live_.training = additions_.training_ids();
    number();
    return std::move(live_);
  }

private:
  struct Made {
    PlanAdditions::Handle handle{};
    LiveOp op;
  };

  PlanAdditions::Handle append(LaneId lane, const Op& op, const LiveOp& what) {
    made_.push_back({additions_.append(lane, op), what});
    return made_.back().handle;
  }

  void add_slot(std::int32_t p, std::int32_t slot) {
    const LivePipeline& own = live_.pipelines[at(p)];
    const ServedModel& model = served_[own.model].model;
    std::optional<PlanAdditions::Handle> before;
    for (int stage = 0; stage < model.stages; ++stage) {
      const Rank rank{own.pipeline.ranks[to_size(stage)]};
      LiveOp what{.kind = LiveOp::Kind::stage,
                  .stage = static_cast<std::int16_t>(stage),
                  .pipeline = p,
                  .number = slot};
      Op op;
      op.chunk = ChunkId{stage};
      op.microbatch = MicrobatchId{slot};
      std::optional<PlanAdditions::Handle> arrived;
      if (before) {
        const Rank from{own.pipeline.ranks[to_size(stage - 1)]};
        const auto [send, recv] =
            additions_.append_message("prefill", from, rank, op, {.latency = model.hop});
        additions_.after(send, *before);
        what.kind = LiveOp::Kind::other;
        made_.push_back({send, what});
        what.kind = LiveOp::Kind::arrived;
        made_.push_back({recv, what});
        what.kind = LiveOp::Kind::stage;
        arrived = recv;
      }
      before = add_stage(rank, op, what, parts_of(model, stage), arrived);
    }
  }

  [[nodiscard]] int parts_of(const ServedModel& model, int stage) const {
    const bool by_layer =
        options_.overrun == Overrun::kill || (sends(model) && options_.kv == KvSending::layerwise);
    return by_layer ? std::max(1, layers_of_stage(model, stage)) : 1;
  }

  /// The last part's op.
  PlanAdditions::Handle add_stage(Rank rank, Op op, LiveOp what, int parts,
                                  const std::optional<PlanAdditions::Handle>& arrived) {
    op.kind = OpKind::compute;
    op.resources = additions_.device_of(rank);
    PlanAdditions::Handle last{};
    for (int part = 0; part < parts; ++part) {
      what.part = static_cast<std::int16_t>(part);
      last = append(additions_.lane("prefill", OpKind::compute, rank), op, what);
      if (part == 0 && arrived) additions_.after(last, *arrived);
    }
    return last;
  }

  void add_answers() {
    const LaneId lane = additions_.lane("controller", OpKind::compute, options_.controller);
    Op op;
    op.kind = OpKind::compute;
    op.chunk = ChunkId{0};
    op.microbatch = MicrobatchId{0};
    op.resources = decides_;
    // As many may be withdrawn as are placed.
    for (std::int32_t i = 0; i < 2 * live_.slots * std::ssize(live_.pipelines); ++i)
      append(lane, op, {.kind = LiveOp::Kind::answer, .number = i});
  }

  [[nodiscard]] bool sends(const ServedModel& model) const {
    return options_.kv && sends_kv(model);
  }

  void add_interfaces() {
    for (const LivePipeline& own : live_.pipelines) {
      const ServedModel& model = served_[own.model].model;
      if (!sends(model)) continue;
      for (const std::int32_t gpu : own.pipeline.ranks) {
        const Rank rank{gpu};
        const auto [sender, is_new] = senders_.try_emplace(rank, Sender{&*model.decode, {}});
        if (sender->second.link->latency != model.decode->latency)
          fail(
              "{}: its keys and values take another latency than those of another model on the "
              "same GPUs (a live run has one link for both). Give both the same.",
              model.name);
        if (is_new) sender->second.interface = additions_.interface_of(rank);
        int& slots = decode_.try_emplace(additions_.decode_rank_of(rank), 0).first->second;
        slots = std::max(slots, model.decode->slots);
      }
    }
    for (const auto& [rank, slots] : decode_)
      workers_[rank] = additions_.add_resource(fmt::format("decode {}", index(rank)),
                                               ResourceKind::workers, slots);
  }

  /// Lanes of decode ranks stand after all others, and ascend.
  void add_decode_lanes() {
    for (const auto& [rank, slots] : decode_) {
      const int lanes = std::min(slots, kMostTokensAtOnce);
      const std::int64_t prompts = live_.slots * std::ssize(live_.pipelines);
      for (int i = 0; i < lanes; ++i) {
        const LaneId lane =
            additions_.lane(i == 0 ? "decode" : fmt::format("decode {}", i), OpKind::compute, rank);
        Op op;
        op.kind = OpKind::compute;
        op.chunk = ChunkId{0};
        op.resources = workers_.at(rank);
        for (std::int64_t k = 0; k < (prompts + lanes - 1) / lanes; ++k) {
          op.microbatch = MicrobatchId{static_cast<std::int32_t>(k)};
          append(lane, op, {.kind = LiveOp::Kind::token, .number = static_cast<std::int32_t>(k)});
        }
      }
    }
  }

  struct Sender {
    const DecodeLink* link = nullptr;
    ResourceSetId interface {};
  };
  void add_slices(Rank rank, const Sender& sender) {
    Op op;
    op.chunk = ChunkId{0};
    op.size = sender.link->slice;
    for (int i = 0; i < options_.slices[index(rank)]; ++i) {
      op.microbatch = MicrobatchId{i};
      const auto [send, recv] =
          additions_.append_message("kv", rank, additions_.decode_rank_of(rank), op,
                                    {.latency = sender.link->latency,
                                     .transfer = op.size / sender.link->rate,
                                     .holds = sender.interface});
      made_.push_back({send, {.kind = LiveOp::Kind::slice, .number = i}});
      made_.push_back({recv, {.kind = LiveOp::Kind::slice_arrived, .number = i}});
    }
  }

  void number() {
    live_.kv.resize(live_.plan.ranks.size());
    for (const auto& [rank, slots] : decode_) live_.decodes.push_back({rank, slots, {}});
    live_.ops.resize(live_.plan.ops.size());
    for (std::size_t i = 0; i < live_.training.size(); ++i)
      live_.ops[index(live_.training[i])] = {.kind = LiveOp::Kind::training,
                                             .number = static_cast<std::int32_t>(i)};
    live_.stages.resize(live_.pipelines.size() * to_size(live_.slots));
    for (const Made& made : made_) note(additions_.id(made.handle), made.op);
    live_.controller =
        additions_.id(additions_.lane("controller", OpKind::compute, options_.controller));
    live_.lanes.assign(live_.plan.ranks.size(), kNone<LaneId>);
    for (std::size_t l = 0; l < live_.plan.lanes.size(); ++l) {
      const Lane& lane = live_.plan.lanes[l];
      if (lane.count > 0 && live_.ops[index(lane.first)].kind == LiveOp::Kind::stage)
        live_.lanes[index(lane.rank)] = LaneId{static_cast<std::uint32_t>(l)};
    }
  }

  void note(OpId id, const LiveOp& what) {
    live_.ops[index(id)] = what;
    if (what.kind == LiveOp::Kind::answer) return live_.answers.push_back(id);
    if (what.kind == LiveOp::Kind::token) return note_token(id);
    if (what.kind == LiveOp::Kind::slice) {
      LiveSlices& own = live_.kv[index(live_.plan.rank_of(id))];
      own.lane = live_.plan.op(id).lane;
      own.decode = live_.plan.op(id).peer;
      return own.sends.push_back(id);
    }
    if (what.kind == LiveOp::Kind::slice_arrived) return;
    auto& stages = live_.stages[at(what.pipeline) * to_size(live_.slots) + at(what.number)];
    stages.resize(std::max(stages.size(), to_size(what.stage + 1)));
    SlotStage& stage = stages[at(what.stage)];
    if (what.kind == LiveOp::Kind::arrived) stage.arrived = id;
    if (what.kind != LiveOp::Kind::stage) return;
    if (what.part == 0) stage.first = id;
    stage.parts = what.part + 1;
  }

  void note_token(OpId id) {
    LiveDecode& own = *std::ranges::find(live_.decodes, live_.plan.rank_of(id), &LiveDecode::rank);
    const LaneId lane = live_.plan.op(id).lane;
    auto place = std::ranges::find(own.lanes, lane, &LiveDecode::Tokens::lane);
    if (place == own.lanes.end()) place = own.lanes.insert(place, {lane, {}});
    place->ops.push_back(id);
  }

  const std::vector<Served>& served_;
  const LivePlanOptions& options_;
  PlanAdditions additions_;
  ResourceSetId decides_{};
  std::map<Rank, Sender> senders_;
  std::map<Rank, int> decode_;  ///< decode ranks, and the prompts that each holds at a time
  std::map<Rank, ResourceSetId> workers_;
  std::vector<Made> made_;
  LivePlan live_;
};

}  // namespace

LivePlan make_live_plan(const Plan& training, const std::vector<Served>& served,
                        const LivePlanOptions& options) {
  for (const Served& each : served)
    if (options.overrun == Overrun::kill && each.model.stages > 1)
      fail(
          "{}: a prompt of {} stages is not killed between them (the messages of its slot wait for "
          "it). Let it finish, or serve on one GPU.",
          each.model.name, each.model.stages);
  return SlotLowering{training, served, options}.run();
}

int slots_of(const IterationBubbles& stretch, const std::vector<Served>& served) {
  constexpr std::int64_t kMost = 1024;
  std::vector<Duration> idle(to_size(stretch.gpus));
  for (const Bubble& bubble : stretch.bubbles) idle[at(bubble.rank)] += bubble.length();
  const Duration most = idle.empty() ? Duration{} : std::ranges::max(idle);
  return static_cast<int>(
      std::clamp<std::int64_t>(2 * (most / least_stage_time(served)), 1, kMost));
}

std::vector<std::int64_t> slices_of(const IterationBubbles& stretch,
                                    const std::vector<Served>& served, KvSending sending,
                                    int slots) {
  std::vector<Duration> idle(to_size(stretch.gpus)), longest(to_size(stretch.gpus));
  for (const Bubble& bubble : stretch.bubbles) {
    idle[at(bubble.rank)] += bubble.length();
    longest[at(bubble.rank)] = std::max(longest[at(bubble.rank)], bubble.length());
  }
  const Duration all_longest = longest.empty() ? Duration{} : std::ranges::max(longest);
  std::vector<double> most(to_size(stretch.gpus), 0);
  for (const Served& each : served) {
    if (!sends_kv(each.model)) continue;
    for (std::int64_t tokens = 1;; tokens *= 2) {
      const auto whole = each.model.time(tokens);
      if (!whole || tokens > (std::int64_t{1} << 20)) break;
      for (int stage = 0; stage < each.model.stages; ++stage) {
        const Duration takes = each.model.stage_time(*whole, stage);
        if (takes > all_longest) continue;
        const auto slices = kv_slices(each.model, tokens, stage, sending).size();
        for (const Pipeline& pipeline : each.serving.pipelines) {
          const std::size_t rank = at(pipeline.ranks[to_size(stage)]);
          if (takes > longest[rank]) continue;  // no bubble holds it
          // The last prompt may begin as the last bubble closes.
          const double prompts =
              1 + 2 * static_cast<double>(idle[rank].count()) /
                      static_cast<double>(std::max<std::int64_t>(1, takes.count()));
          most[rank] =
              std::max(most[rank], std::min<double>(prompts, slots) * static_cast<double>(slices));
        }
      }
    }
  }
  return {most.begin(), most.end()};
}

plan::DrawnWords LiveAnswer::words() const {
  return {(std::int64_t{request} << 32) | tokens,
          (start.count() << 17) | (std::int64_t{pipeline} << 1) | (is_withdrawn ? 1 : 0)};
}

LiveAnswer LiveAnswer::of(const plan::DrawnWords& words) {
  return {.request = static_cast<std::int32_t>(words[0] >> 32),
          .tokens = static_cast<std::int32_t>(words[0] & 0x7fffffff),
          .pipeline = static_cast<std::int32_t>((words[1] >> 1) & 0xffff),
          .start = Duration{words[1] >> 17},
          .is_withdrawn = (words[1] & 1) != 0};
}

plan::DrawnWords LiveSlice::words() const {
  return {(std::int64_t{request} << 32) | tokens,
          (std::int64_t{pipeline} << 32) | (std::int64_t{stage} << 24) | number};
}

LiveSlice LiveSlice::of(const plan::DrawnWords& words) {
  return {.request = static_cast<std::int32_t>(words[0] >> 32),
          .tokens = static_cast<std::int32_t>(words[0] & 0x7fffffff),
          .pipeline = static_cast<std::int32_t>(words[1] >> 32),
          .stage = static_cast<std::int32_t>((words[1] >> 24) & 0xff),
          .number = static_cast<std::int32_t>(words[1] & 0xffffff)};
}

}  // namespace longhaul::prefill
