#include "prefill/live/live_stretches.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::prefill {

LiveStretches::LiveStretches(const Plan& training, const OpTimes& times,
                             const IterationBubbles& stretch, const std::vector<Served>& served,
                             const std::vector<Request>& file, Arrivals& arrivals, Rank controller,
                             LiveOptions options)
    : live_{make_live_plan(
          training, served,
          {controller, options.slots > 0 ? options.slots : slots_of(stretch, served),
           options.manners.overrun})},
      graph_{training, times, stretch.gpus},
      options_{std::move(options)},
      controller_{live_, graph_, stretch, served, file, arrivals, options_.controller},
      logs_(live_.lanes.size()) {
  live_.plan.extras.sources.push_back({live_.controller, [this] { return controller_.source(); }});
  for (std::size_t rank = 0; rank < live_.lanes.size(); ++rank) {
    if (live_.lanes[rank] == kNone<LaneId>) continue;
    live_.plan.extras.sources.push_back(
        {live_.lanes[rank], [this, rank, &served] {
           return std::make_unique<LiveRank>(live_, graph_, served, static_cast<std::int32_t>(rank),
                                             options_.manners, logs_[rank]);
         }});
  }
}

void LiveStretches::begin() {
  controller_.begin_stretch();
  for (LiveRankLog& log : logs_) log = {};
}

std::vector<BegunSlot> LiveStretches::begun() const {
  std::vector<BegunSlot> all;
  for (const LiveRankLog& log : logs_) all.insert(all.end(), log.begun.begin(), log.begun.end());
  return all;
}

LiveTally LiveStretches::tally() const {
  LiveTally all;
  for (const LiveRankLog& log : logs_) all += log.tally;
  return all;
}

LiveFilled fill_slots(const LivePlan& live, const std::vector<Served>& served,
                      const std::vector<BegunSlot>& begun, const std::vector<LivePlaced>& placed) {
  LiveFilled all{{live.plan, {}, {}, live.training}, {}, {}};
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
          all.decisions.size(), stage, live.plan.rank_of(own.first),
          each.decision.start + stage_offset(model, each.decision.compute, stage),
          model.stage_time(each.decision.compute, stage)};
      all.filled.stages.push_back({own_stage,
                                   OpId{static_cast<std::uint32_t>(index(own.first)) +
                                        static_cast<std::uint32_t>(own.parts - 1)},
                                   own.first});
    }
    all.decisions.push_back(each.decision);
    all.answers.push_back(live.answers[each.answer]);
  }
  for (std::size_t i = 0; i < live.ops.size(); ++i) {
    const LiveOp& op = live.ops[i];
    if (op.kind == LiveOp::Kind::training || op.kind == LiveOp::Kind::answer) continue;
    const auto found = requests.find({op.pipeline, op.number});
    if (found != requests.end())
      all.filled.plan.extras.served.push_back(
          {OpId{static_cast<std::uint32_t>(i)}, found->second->request, found->second->tokens});
  }
  return all;
}

}  // namespace longhaul::prefill
