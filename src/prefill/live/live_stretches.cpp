#include "prefill/live/live_stretches.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::prefill {

namespace {

LivePlanOptions plan_options(const LiveOptions& options, const IterationBubbles& stretch,
                             const std::vector<Served>& served, Rank controller) {
  LivePlanOptions plan{controller,
                       options.slots > 0 ? options.slots : slots_of(stretch, served),
                       options.manners.overrun,
                       options.kv,
                       {}};
  if (options.kv)
    for (const std::int64_t each : slices_of(stretch, served, *options.kv, plan.slots))
      plan.slices.push_back(static_cast<int>(std::min<std::int64_t>(each, kMostLiveSlices)));
  return plan;
}

/// Who gives no way kills nothing.
LiveControllerOptions controller_options(const LiveOptions& options) {
  LiveControllerOptions controller = options.controller;
  controller.overrun = options.manners.gives_way ? options.manners.overrun : Overrun::finish;
  controller.memory = options.memory;
  return controller;
}

}  // namespace

LiveStretches::LiveStretches(const Plan& training, const OpTimes& times,
                             const IterationBubbles& stretch, const std::vector<Served>& served,
                             const std::vector<Request>& file, Arrivals& arrivals, Rank controller,
                             LiveOptions options)
    : live_{make_live_plan(training, served, plan_options(options, stretch, served, controller))},
      graph_{training, times, stretch.gpus},
      options_{std::move(options)},
      controller_{live_, graph_, stretch, served, file, arrivals, controller_options(options_)},
      logs_(live_.plan.ranks.size()) {
  options_.manners.memory = options_.memory;
  live_.plan.extras.sources.push_back({live_.controller, [this] { return controller_.source(); }});
  for (std::size_t rank = 0; rank < live_.lanes.size(); ++rank) {
    if (live_.lanes[rank] == kNone<LaneId>) continue;
    live_.plan.extras.sources.push_back(
        {live_.lanes[rank], [this, rank, &served] {
           return std::make_unique<LiveRank>(live_, graph_, served, static_cast<std::int32_t>(rank),
                                             options_.manners, logs_[rank]);
         }});
  }
  add_kv_sources(served);
}

void LiveStretches::add_kv_sources(const std::vector<Served>& served) {
  auto& sources = live_.plan.extras.sources;
  for (std::size_t rank = 0; rank < live_.kv.size(); ++rank)
    if (!live_.kv[rank].sends.empty())
      sources.push_back({live_.kv[rank].lane, [this, rank, &served] {
                           return std::make_unique<LiveSender>(
                               live_, served, static_cast<std::int32_t>(rank), logs_[rank]);
                         }});
  for (const LiveDecode& own : live_.decodes) {
    decoders_.push_back(std::make_unique<LiveDecoder>(live_, served, own, logs_[index(own.rank)]));
    for (std::size_t lane = 0; lane < own.lanes.size(); ++lane)
      sources.push_back({own.lanes[lane].lane, [decoder = decoders_.back().get(), lane] {
                           return decoder->source(lane);
                         }});
  }
}

void LiveStretches::begin() {
  controller_.begin_stretch();
  for (LiveRankLog& log : logs_) {
    log = {};
    log.listener = options_.listener;
  }
}

LiveTally LiveStretches::tally() const {
  LiveTally all;
  all.longest_decision = controller_.longest_decision();
  for (const LiveRankLog& log : logs_) all += log.tally;
  return all;
}

namespace {

/// Slices and first tokens of requests that the stretch got, as a filled plan has them: what each
/// carried, not what it had room for.
void fill_kv(const LivePlan& live, const std::vector<SentSlice>& sent,
             const std::vector<DrawnToken>& tokens, LiveFilled& all,
             std::map<OpId, plan::OpServed>& served) {
  std::map<std::int64_t, std::size_t> decision_of;
  for (std::size_t i = 0; i < all.decisions.size(); ++i) decision_of[all.decisions[i].request] = i;
  std::map<std::pair<std::size_t, int>, std::size_t> stage_of;
  for (std::size_t i = 0; i < all.filled.stages.size(); ++i)
    stage_of[{all.filled.stages[i].placed.decision, all.filled.stages[i].placed.stage}] = i;
  Plan& plan = all.filled.plan;
  for (const SentSlice& each : sent) {
    const auto own = decision_of.find(each.request);
    if (own == decision_of.end()) continue;
    const Decision& decision = all.decisions[own->second];
    const OpId send{each.op}, recv{live.plan.op(send).match};
    all.filled.messages.push_back(
        {stage_of.at({own->second, each.stage}), send, recv, true, each.first, each.bytes});
    for (const OpId side : {send, recv}) {
      plan.ops[index(side)].size = Bytes{each.bytes};
      plan.extras.slices.push_back({side, each.number, each.slices});
      served[side] = {side, each.request, static_cast<std::int32_t>(decision.tokens)};
    }
  }
  std::ranges::sort(plan.extras.slices, {}, &plan::OpSlice::op);
  for (const DrawnToken& each : tokens) {
    const auto own = decision_of.find(each.request);
    if (own == decision_of.end()) continue;
    const OpId op{each.op};
    all.filled.tokens.push_back({own->second, op});
    served[op] = {op, each.request, static_cast<std::int32_t>(all.decisions[own->second].tokens)};
  }
  std::ranges::sort(all.filled.tokens, {}, &FilledToken::decision);
}

}  // namespace

LiveFilled fill_slots(const LivePlan& live, const std::vector<Served>& served,
                      const std::vector<BegunSlot>& begun, const std::vector<LivePlaced>& placed,
                      const std::vector<SentSlice>& sent, const std::vector<DrawnToken>& tokens) {
  LiveFilled all{{live.plan, {}, {}, live.training}, {}, {}, {}};
  std::map<std::int64_t, const BegunSlot*> slots;
  std::map<std::pair<std::int32_t, std::int32_t>, const BegunSlot*> requests;
  for (const BegunSlot& each : begun) {
    slots[each.request] = &each;
    requests[{each.pipeline, each.slot}] = &each;
  }
  for (const LivePlaced& each : placed) {
    const BegunSlot& slot = *slots.at(each.decision.request);
    const ServedModel& model = served[each.decision.model].model;
    for (int stage = 0; stage < model.stages; ++stage) {
      const SlotStage& own = live.slot(slot.pipeline, slot.slot)[to_size(stage)];
      const PlacedStage own_stage{
          all.decisions.size(),
          stage,
          live.plan.rank_of(own.first),
          each.decision.start + stage_offset(model, each.decision.compute, stage),
          model.stage_time(each.decision.compute, stage),
          0,
          0,
          each.decision.tokens,
          each.decision.tokens};
      all.filled.stages.push_back({own_stage,
                                   OpId{static_cast<std::uint32_t>(index(own.first)) +
                                        static_cast<std::uint32_t>(own.parts - 1)},
                                   own.first});
    }
    all.decisions.push_back(each.decision);
    all.answers.push_back(live.answers[each.answer]);
    all.told.push_back(each.told);
  }
  std::map<OpId, plan::OpServed> served_ops;
  for (std::size_t i = 0; i < live.ops.size(); ++i) {
    const LiveOp& op = live.ops[i];
    if (op.kind != LiveOp::Kind::stage && op.kind != LiveOp::Kind::arrived &&
        op.kind != LiveOp::Kind::other)
      continue;
    const auto found = requests.find({op.pipeline, op.number});
    const OpId id{static_cast<std::uint32_t>(i)};
    if (found != requests.end())
      served_ops[id] = {id, found->second->request, found->second->tokens};
  }
  fill_kv(live, sent, tokens, all, served_ops);
  for (const auto& [op, of] : served_ops) all.filled.plan.extras.served.push_back(of);
  return all;
}

}  // namespace longhaul::prefill
