#include "prefill/live/live_rank.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "prefill/live/live_kv.hpp"
#include "prefill/prompt/memory_over_time.hpp"

namespace longhaul::prefill {
namespace {

/// How many prompts that do not fit are passed by one that does.
constexpr std::size_t kMostPassed = 16;

}  // namespace

LiveRank::LiveRank(const LivePlan& live, const TrainingGraph& graph,
                   const std::vector<Served>& served, std::int32_t rank, const LiveManners& manners,
                   LiveRankLog& log)
    : live_{live},
      served_{served},
      rank_{rank},
      manners_{manners},
      log_{log},
      expected_{graph, manners.expects},
      used_(live.pipelines.size()) {}

plan::Decision LiveRank::next(const plan::PastEvents& past) {
  // Training's first: what has ended since an answer was given is over when that is heeded.
  for (const plan::OpEnd& end : past.ended())
    if (const LiveOp& op = live_.ops[index(end.op)]; op.kind == LiveOp::Kind::training)
      expected_.heed(OpId{static_cast<std::uint32_t>(op.number)}, end.end);
  for (const plan::OpEnd& end : past.ended()) heed(end, past.now());
  count_declined();
  if (auto decision = go_on()) return *decision;
  if (expected_.is_over()) return plan::LaneOver{};
  Duration wake = Duration::max();
  if (auto decision = start_one(past.now(), wake)) return *decision;
  return plan::WaitForEnd{wake};
}

void LiveRank::heed(const plan::OpEnd& end, Duration now) {
  const LiveOp& op = live_.ops[index(end.op)];
  switch (op.kind) {
    case LiveOp::Kind::answer: return take(LiveAnswer::of(end.words), now);
    case LiveOp::Kind::stage:
      if (op.stage == 0 || manners_.memory) stage_ended(op, LiveAnswer::of(end.words));
      return;
    case LiveOp::Kind::arrived: return void(arrived_.insert({op.pipeline, op.number, op.stage}));
    case LiveOp::Kind::slice:
      if (manners_.memory && live_.plan.rank_of(end.op) == Rank{rank_})
        slice_left(LiveSlice::of(end.words));
      return;
    case LiveOp::Kind::training:
    case LiveOp::Kind::slice_arrived:
    case LiveOp::Kind::token:
    case LiveOp::Kind::other: return;
  }
}

void LiveRank::take(const LiveAnswer& answer, Duration now) {
  if (answer.is_withdrawn) {
    std::erase_if(given_, [&](const Given& each) {
      return each.answer.request == answer.request && each.stage == 0;
    });
    return;
  }
  const ServedModel& model = model_of(answer.pipeline);
  const Duration whole = *model.time(answer.tokens);
  const auto& ranks = live_.pipelines[at(answer.pipeline)].pipeline.ranks;
  for (int stage = 0; stage < model.stages; ++stage) {
    if (ranks[to_size(stage)] != rank_) continue;
    Given given{.answer = answer,
                .stage = stage,
                .start = answer.start + stage_offset(model, whole, stage),
                .estimate = model.stage_time(whole, stage)};
    if (stage == 0 && now > given.start) {
      ++log_.tally.late_answers;
      log_.tally.latest_answer = std::max(log_.tally.latest_answer, now - given.start);
    }
    given.closes = expected_.next_block(rank_);
    while (given.closes < expected_.blocks(rank_) &&
           expected_.closes(rank_, given.closes, now) <= given.start)
      ++given.closes;
    given_.insert(std::ranges::upper_bound(given_, given.start, {}, &Given::start), given);
  }
}

/// The slot in which a prompt's stage may begin by now, as far as the stages before it go.
std::optional<std::int32_t> LiveRank::slot_for(const Given& given) const {
  const std::int32_t pipeline = given.answer.pipeline;
  if (given.stage == 0)
    return used_[at(pipeline)] < live_.slots ? std::optional{used_[at(pipeline)]} : std::nullopt;
  const auto found = slots_.find(given.answer.request);
  if (found == slots_.end() || !arrived_.contains({pipeline, found->second, given.stage}))
    return std::nullopt;
  return found->second;
}

void LiveRank::count_declined() {
  const std::size_t next = expected_.next_block(rank_);
  for (Given& each : given_) {
    if (each.closes >= next || !slot_for(each)) continue;
    each.closes = next;
    each.is_left_over = true;
    ++log_.tally.declined;
  }
}

/// The next part of what it computes.
std::optional<plan::Decision> LiveRank::go_on() {
  if (!running_) return std::nullopt;
  if (running_->part == running_->stage.parts) {
    running_.reset();
    return std::nullopt;
  }
  if (manners_.overrun == Overrun::kill && manners_.gives_way && expected_.is_ready(rank_)) {
    forget_unsent();
    running_.reset();
    ++log_.tally.killed;
    return std::nullopt;
  }
  return draw_part();
}

/// Those that may begin before that block: what is meant for its bubble first, each by start.
std::vector<std::size_t> LiveRank::in_turn(std::size_t next) const {
  std::vector<std::size_t> places;
  for (const bool left_over : {false, true})
    for (std::size_t i = 0; i < given_.size() && places.size() < kMostPassed; ++i) {
      const Given& each = given_[i];
      const bool may_begin = each.closes <= next || !manners_.gives_way;
      if (each.is_left_over == left_over && may_begin) places.push_back(i);
    }
  return places;
}

std::optional<plan::Decision> LiveRank::start_one(Duration now, Duration& wake) {
  if (given_.empty()) return std::nullopt;
  const std::size_t next = expected_.next_block(rank_);
  std::optional<Duration> closes;
  for (const std::size_t i : in_turn(next)) {
    const Given& each = given_[i];
    if (!slot_for(each)) continue;
    if (!manners_.gives_way) return begin(i, now);
    // One GPU's prompts follow each other from the bubble's begin on; stages keep their times.
    if (model_of(each.answer.pipeline).stages > 1 && now < each.start) {
      wake = std::min(wake, each.start);
      continue;
    }
    if (!closes) closes = expected_.closes(rank_, next, now);
    if (*closes <= now) return std::nullopt;  // a block computes
    if (now + each.estimate <= *closes && has_memory(each, now)) return begin(i, now);
  }
  return std::nullopt;
}

plan::Decision LiveRank::begin(std::size_t which, Duration now) {
  const Given given = given_[which];
  given_.erase(given_.begin() + static_cast<std::ptrdiff_t>(which));
  const LiveAnswer& answer = given.answer;
  const std::int32_t slot = *slot_for(given);
  if (given.stage == 0) {
    ++used_[at(answer.pipeline)];
    log_.begun.push_back({answer.pipeline, slot, answer.request, answer.tokens});
  }
  const std::size_t model = live_.pipelines[at(answer.pipeline)].model;
  const Duration whole = *served_[model].model.time(answer.tokens);
  const Duration takes = manners_.takes
                             ? served_[model].model.stage_time(
                                   manners_.takes(model, answer.request, whole), given.stage)
                             : given.estimate;
  if (const ServedModel& own = served_[model].model; keeps_account())
    held_[answer.request] = {
        asks(answer, given.stage, now),
        live_.sends(own) ? kv_slices(own, answer.tokens, given.stage, live_.sending).size() : 0};
  const SlotStage& stage = live_.slot(answer.pipeline, slot)[to_size(given.stage)];
  running_ = Running{answer, stage, takes, 0, given.stage, slot};
  return draw_part();
}

plan::Decision LiveRank::draw_part() {
  Running& running = *running_;
  const Duration takes = running.left / (running.stage.parts - running.part);
  running.left -= takes;
  const OpId op{static_cast<std::uint32_t>(index(running.stage.first)) +
                static_cast<std::uint32_t>(running.part++)};
  if (log_.listener != nullptr)
    log_.listener->drawn(DrawnPart{.op = op,
                                   .request = running.answer.request,
                                   .tokens = running.answer.tokens,
                                   .pipeline = running.answer.pipeline,
                                   .slot = running.slot,
                                   .stage = running.number,
                                   .part = running.part - 1,
                                   .parts = running.stage.parts});
  return plan::Draw{op, takes, running.answer.words()};
}

/// What sends nothing is over with its last stage, on whichever GPU.
void LiveRank::stage_ended(const LiveOp& op, const LiveAnswer& answer) {
  if (op.stage == 0) slots_[answer.request] = op.number;
  if (!manners_.memory) return;
  const auto& stages = live_.slot(op.pipeline, op.number);
  const bool is_over =
      to_size(op.stage) + 1 == stages.size() && op.part + 1 == stages[at(op.stage)].parts;
  if (is_over && !live_.sends(model_of(op.pipeline))) held_.erase(answer.request);
}

void LiveRank::slice_left(const LiveSlice& slice) {
  const auto own = held_.find(slice.request);
  if (own != held_.end() && --own->second.slices == 0) held_.erase(own);
}

/// Of what is killed only the layers leave that it has computed; of one sent whole nothing does.
void LiveRank::forget_unsent() {
  const auto own = held_.find(running_->answer.request);
  if (own == held_.end()) return;
  const ServedModel& model = model_of(running_->answer.pipeline);
  if (live_.sends(model))
    for (const KvSlice& slice :
         kv_slices(model, running_->answer.tokens, running_->number, live_.sending))
      if (live_.sending == KvSending::whole || slice.part >= running_->part) --own->second.slices;
  if (own->second.slices == 0) held_.erase(own);
}

HeldBytes LiveRank::asks(const LiveAnswer& answer, int stage, Duration now) const {
  const ServedModel& model = model_of(answer.pipeline);
  const Duration whole = *model.time(answer.tokens);
  Duration until = now + pass_span(model, whole) - stage_offset(model, whole, stage);
  if (live_.sends(model)) until += kv_tail(model, answer.tokens, whole, live_.sending);
  return {held_memory(model, answer.tokens, stage), until + model.guard};
}

bool LiveRank::has_memory(const Given& given, Duration now) {
  if (!keeps_account()) return true;
  std::vector<HeldBytes> others;
  for (const auto& [request, held] : held_) others.push_back(held.bytes);
  return manners_.memory->fits(rank_, expected_, now, now, asks(given.answer, given.stage, now),
                               others);
}

}  // namespace longhaul::prefill
