#include "prefill/live/live_controller.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"
#include "prefill/live/live_kv.hpp"

namespace longhaul::prefill {
namespace {

/// How soon to look again for a place at a decode rank.
constexpr Duration kAgain = std::chrono::milliseconds{1};

/// With a guard of 0 the room as it is.
Duration whole_guards(Duration room, Duration guard) {
  return guard > Duration{} ? room - room % guard : room;
}

class ControllerSource final : public plan::OpSource {
public:
  explicit ControllerSource(LiveController& controller) : controller_{controller} {}
  [[nodiscard]] plan::Decision next(const plan::PastEvents& past) override {
    return controller_.next(past);
  }

private:
  LiveController& controller_;
};

}  // namespace

LiveController::LiveController(const LivePlan& live, const TrainingGraph& graph,
                               const IterationBubbles& stretch, const std::vector<Served>& served,
                               const std::vector<Request>& file, Arrivals& arrivals,
                               LiveControllerOptions options)
    : live_{live},
      stretch_{stretch},
      served_{served},
      arrivals_{arrivals},
      options_{std::move(options)},
      expected_{graph, options_.expects},
      shortest_{least_stage_time(served)},
      planned_{stretch, {false, 1, true}, shortest_},
      is_dead_(live.pipelines.size()) {
  if (options_.backlog)
    queue_.emplace(file, *options_.backlog, [this](Waiting& waiting) { return admit(waiting); });
  begin_stretch();
  plan_rooms();
  if (options_.memory)
    for (std::int32_t rank = 0; rank < options_.memory->gpus(); ++rank)
      planned_steps_.push_back(options_.memory->steps(rank, expected_, {}));
}

bool LiveController::fills_bubbles() const {
  return fills_by_length(options_.policy, served_.size(), served_.front().model.stages);
}

void LiveController::begin_stretch() {
  expected_.begin();
  entries_.clear();
  entry_of_.clear();
  outbox_.clear();
  answers_ = 0;
  use_ = no_use();
  longest_decision_ = {};
  drained_.assign(live_.pipelines.size(), false);
  filled_.assign(live_.lanes.size(), 0);
  for (Pending& each : pending_) each.pipeline.reset();
  arrived_.insert(arrived_.begin(), pending_.begin(), pending_.end());
  pending_.clear();
  later_.reset();
  look_ = {};
}

void LiveController::plan_rooms() {
  if (!queue_ || !fills_bubbles()) return;
  planned_rooms_.assign(live_.lanes.size(), {});
  for (const LivePipeline& each : live_.pipelines) {
    const std::int32_t rank = each.pipeline.ranks.front();
    auto& rooms = planned_rooms_[at(rank)];
    for (std::size_t block = 0; block <= expected_.blocks(rank); ++block)
      rooms.push_back(expected_.closes(rank, block, {}) - served_.front().model.guard -
                      std::max(options_.heard_after, expected_.opens(rank, block, {})));
  }
}

std::unique_ptr<plan::OpSource> LiveController::source() {
  return std::make_unique<ControllerSource>(*this);
}

plan::Decision LiveController::next(const plan::PastEvents& past) {
  heed(past);
  const Duration now = past.now();
  if (expected_.is_over()) return plan::LaneOver{};
  if (outbox_.empty()) decide(now);
  if (!outbox_.empty() && answers_ < live_.answers.size()) {
    const LiveAnswer answer = outbox_.front();
    outbox_.pop_front();
    if (!answer.is_withdrawn) entries_[entry_of_.at(answer.request)].number = answers_;
    return plan::Draw{live_.answers[answers_++], Duration{}, answer.words()};
  }
  // At the latest when training should be over, to see whether it is.
  const Duration until = std::min(look_, expected_.end(now));
  if (until <= now) return plan::WaitForEnd{look_ > now ? look_ : Duration::max()};
  return plan::WaitUntil{until};
}

void LiveController::heed(const plan::PastEvents& past) {
  for (const plan::OpEnd& end : past.ended()) {
    const LiveOp& op = live_.ops[index(end.op)];
    if (op.kind == LiveOp::Kind::training)
      expected_.heed(OpId{static_cast<std::uint32_t>(op.number)}, end.end);
    if (op.kind == LiveOp::Kind::stage) stage_ended(op, LiveAnswer::of(end.words), end.end);
    if (op.kind == LiveOp::Kind::token) token_ended(LiveAnswer::of(end.words), end.end);
  }
}

void LiveController::decide(Duration now) {
  look_ = Duration::max();
  let_in(now);
  heed_deaths(now);
  heed_closing(now);
  heed_drains(now);
  if (is_closing_) return refuse_waiting();
  if (queue_ && fills_bubbles())
    fill_bubbles(now);
  else if (queue_)
    place_in_order(now);
  else
    place_arrived(now);
}

std::optional<RefusalReason> LiveController::admit(Waiting& waiting) {
  waiting.model = served_index(waiting.request, served_);
  const auto whole = model(waiting.model).time(waiting.request.tokens);
  if (!whole) return RefusalReason::profile;
  waiting.whole = *whole;
  if (!could_hold(waiting)) return RefusalReason::too_long;
  if (lacking_memory(waiting) > Bytes{}) return RefusalReason::memory;
  return std::nullopt;
}

/// Some bubbles of the plan, with nothing placed in them.
bool LiveController::could_hold(const Waiting& waiting) {
  const auto [known, is_new] = holds_.try_emplace({waiting.model, waiting.whole}, false);
  if (!is_new) return known->second;
  const Served& by = served_[waiting.model];
  known->second = std::ranges::any_of(by.serving.pipelines, [&](const Pipeline& pipeline) {
    return earliest_pass(planned_, by.model, pipeline, waiting.whole, {}, planned_.period())
        .has_value();
  });
  return known->second;
}

void LiveController::place_in_order(Duration now) {
  queue_->refill(clock_ + now, refused_);
  std::optional<FreeTime> free;
  while (const Waiting* const front = queue_->front()) {
    if (!free) free.emplace(free_time(now));
    if (!some_decode_slot(front->model)) {
      look_ = std::min(look_, now + kAgain);
      return;
    }
    const auto choice = choose(*free, std::nullopt, *front, now);
    if (!choice) return;
    if (choice->start - options_.lead > now) {
      look_ = std::min(look_, choice->start - options_.lead);
      return;
    }
    const Waiting waiting = *front;
    queue_->pop_front();
    take(*free, waiting, *choice);
    place({.waiting = waiting}, choice->pipeline, choice->start, now);
    queue_->refill(clock_ + now, refused_);
  }
}

/// Fills the bubbles that open soon, in the order in which they do.
void LiveController::fill_bubbles(Duration now) {
  std::vector<std::tuple<Duration, std::size_t, std::size_t>> open;  // opens, pipeline, block
  for (std::size_t p = 0; p < live_.pipelines.size(); ++p) {
    const std::int32_t rank = live_.pipelines[p].pipeline.ranks.front();
    if (!is_open(p)) continue;
    for (std::size_t& block = filled_[at(rank)]; block <= expected_.blocks(rank); ++block) {
      const Duration opens = expected_.opens(rank, block, now);
      if (opens - options_.lead > now) {
        look_ = std::min(look_, opens - options_.lead);
        break;
      }
      if (block >= expected_.next_block(rank)) open.emplace_back(opens, p, block);
    }
  }
  std::ranges::sort(open);
  for (const auto& [opens, pipeline, block] : open) fill_bubble(pipeline, block, now);
}

void LiveController::fill_bubble(std::size_t pipeline, std::size_t block, Duration now) {
  const std::int32_t rank = live_.pipelines[pipeline].pipeline.ranks.front();
  Duration start = std::max(now + options_.heard_after, expected_.opens(rank, block, now));
  Duration room = room_of(rank, block, start, now);
  const Duration left = left_over(pipeline, block, room, now);
  start += left;
  room -= left;
  while (room > Duration{} && use_.placed[pipeline] < live_.slots && has_decode_slot(pipeline)) {
    queue_->refill(clock_ + now, refused_);
    const auto waiting = queue_->take_for(room);
    if (!waiting) return;
    if (!has_room(use_, pipeline, waiting->request.tokens)) {
      queue_->put_back(*waiting);
      return;
    }
    place({.waiting = *waiting}, pipeline, start, now);
    start += waiting->whole;
    room -= waiting->whole;
  }
}

/// The room of a bubble from `start` on, in whole guards. The planned one is kept where the
/// expected one is at most half a guard below it, which the guard makes good, and above it by less
/// than a guard or than any prompt takes: small differences between run and plan rarely change the
/// choice.
Duration LiveController::room_of(std::int32_t rank, std::size_t block, Duration start,
                                 Duration now) {
  const Duration guard = served_.front().model.guard;
  const Duration planned = planned_rooms_[at(rank)][block];
  const Duration kept = whole_guards(planned, guard);
  const Duration expected = expected_.closes(rank, block, now) - guard - start;
  if (expected >= kept - guard / 2 && expected < planned + std::max(guard, shortest_)) return kept;
  return whole_guards(expected, guard);
}

/// What the GPU was given for earlier bubbles, which have closed, and has not computed, as far as
/// it fits in the room of this one.
Duration LiveController::left_over(std::size_t pipeline, std::size_t block, Duration room,
                                   Duration now) {
  const std::int32_t rank = live_.pipelines[pipeline].pipeline.ranks.front();
  Duration left{};
  for (const Entry& entry : entries_)
    if (at(entry.answer.pipeline) == pipeline && !entry.ended.front() && !entry.is_withdrawn &&
        !is_killed(entry) && entry.closes.front() < block &&
        expected_.closes(rank, entry.closes.front(), now) <= now &&
        left + entry.waiting.whole <= room)
      left += entry.waiting.whole;
  return left;
}

/// The expected bubbles, less what was placed in them and is not over.
FreeTime LiveController::free_time(Duration now) {
  FreeTime free{expected_.bubbles(now), {false, 1, true}, shortest_};
  for (const Entry& entry : entries_) {
    if (entry.is_withdrawn || is_killed(entry)) continue;
    const LivePipeline& own = live_.pipelines[at(entry.answer.pipeline)];
    for (int stage = 0; stage < model(own.model).stages; ++stage) {
      if (entry.ended[to_size(stage)]) continue;
      const std::int32_t rank = own.pipeline.ranks[to_size(stage)];
      Duration from =
          entry.answer.start + stage_offset(model(own.model), entry.waiting.whole, stage);
      Duration length = model(own.model).stage_time(entry.waiting.whole, stage);
      if (expected_.closes(rank, entry.closes[to_size(stage)], now) <= now) {
        from = std::max(from, now);  // it was declined, and takes the next bubble that holds it
      } else if (from < now) {
        length -= now - from;  // it runs
        from = now;
      }
      if (length <= Duration{}) continue;
      if (const auto start = free.earliest(rank, from, length, {}, free.period()))
        (void)free.take(rank, *start, length);
    }
  }
  return free;
}

std::optional<LiveController::Choice> LiveController::choose(
    FreeTime& free, const std::optional<MemoryOverTime>& memory, const Waiting& waiting,
    Duration now) {
  std::optional<Choice> best;
  for (std::size_t p = 0; p < live_.pipelines.size(); ++p) {
    if (live_.pipelines[p].model != waiting.model || !is_open(p) || !has_decode_slot(p) ||
        !has_room(use_, p, waiting.request.tokens))
      continue;
    keep_better(earliest_of(free, memory, waiting, p, now, best ? best->start : free.period()), p,
                free, best);
  }
  return best;
}

/// Of two pipelines the one on which it starts earlier, then the one whose gap it leaves least of.
void LiveController::keep_better(std::optional<Duration> start, std::size_t pipeline,
                                 const FreeTime& free, std::optional<Choice>& best) const {
  if (!start) return;
  const LivePipeline& own = live_.pipelines[pipeline];
  Choice choice{pipeline, *start, {}};
  if (options_.policy == PlacementPolicy::best_fit)
    choice.left = free.gap_end(own.pipeline.ranks.front(), *start, model(own.model).guard) - *start;
  if (!best || std::tuple{choice.start, choice.left} < std::tuple{best->start, best->left})
    best = choice;
}

void LiveController::take(FreeTime& free, const Waiting& waiting, const Choice& choice) {
  const ServedModel& own = model(waiting.model);
  const auto& ranks = live_.pipelines[choice.pipeline].pipeline.ranks;
  for (int stage = 0; stage < own.stages; ++stage)
    (void)free.take(ranks[to_size(stage)], choice.start + stage_offset(own, waiting.whole, stage),
                    own.stage_time(waiting.whole, stage));
}

void LiveController::place(Pending pending, std::size_t pipeline, Duration start, Duration now) {
  tell_place(pending, pipeline, start, now);
  const Waiting& waiting = pending.waiting;
  const ServedModel& own = model(waiting.model);
  Entry entry;
  entry.waiting = waiting;
  entry.told = *pending.told;
  entry.end = start + pass_span(own, waiting.whole);
  entry.answer = {.request = static_cast<std::int32_t>(waiting.request.id),
                  .tokens = static_cast<std::int32_t>(waiting.request.tokens),
                  .pipeline = static_cast<std::int32_t>(pipeline),
                  .start = start};
  entry.ended.assign(to_size(own.stages), false);
  for (int stage = 0; stage < own.stages; ++stage) {
    const std::int32_t rank = live_.pipelines[pipeline].pipeline.ranks[to_size(stage)];
    std::size_t block = expected_.next_block(rank);
    const Duration from = start + stage_offset(own, waiting.whole, stage);
    while (block < expected_.blocks(rank) && expected_.closes(rank, block, now) <= from) ++block;
    entry.closes.push_back(block);
  }
  add_use(use_, pipeline, waiting.request.tokens);
  entry_of_[entry.answer.request] = entries_.size();
  outbox_.push_back(entry.answer);
  entries_.push_back(std::move(entry));
}

}  // namespace longhaul::prefill
