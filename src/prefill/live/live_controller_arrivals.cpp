// An open loop: each request is answered as it comes, with a place in this stretch or a later one.
#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "prefill/live/live_controller.hpp"
#include "prefill/live/live_kv.hpp"

namespace longhaul::prefill {

void LiveController::let_in(Duration now) {
  std::vector<std::int64_t> cancelled;
  std::vector<Request> arrived;
  arrivals_.collect(clock_ + now, arrived, cancelled);
  for (Request& request : arrived) {
    Waiting waiting{.request = std::move(request)};
    if (const auto reason = admit(waiting)) {
      first_answer(waiting.request, now);
      refuse(waiting, *reason);
    } else {
      arrived_.push_back({.waiting = std::move(waiting)});
    }
  }
  for (const std::int64_t request : cancelled) cancel(request, now);
  const Duration next = arrivals_.next_look(clock_ + now);
  if (next < Duration::max()) look_ = std::min(look_, std::max(next - clock_, now + Duration{1}));
}

void LiveController::place_arrived(Duration now) {
  if (arrived_.empty()) return;
  FreeTime free = free_time(now);
  std::optional<MemoryOverTime> memory = expected_memory(now);
  for (Pending& each : std::exchange(arrived_, {})) place_one(std::move(each), free, memory, now);
}

void LiveController::place_one(Pending pending, FreeTime& free,
                               std::optional<MemoryOverTime>& memory, Duration now) {
  const Waiting& waiting = pending.waiting;
  if (const auto datacenter = all_dead_of(waiting.model)) {
    first_answer(waiting.request, now);
    return fail_by(*datacenter, waiting);
  }
  if (const auto choice = choose(free, memory, waiting, now)) {
    if (says_no(pending, choice->start, now)) return;
    take(free, waiting, *choice);
    if (memory)
      hold(*memory, waiting, choice->pipeline, choice->start,
           choice->start + released_after(waiting));
    return place(std::move(pending), choice->pipeline, choice->start, now);
  }
  if (const auto choice = choose_later(waiting)) {
    const Duration start = expected_.end(now) + choice->start;
    if (says_no(pending, start, now)) return;
    pending.pipeline = choice->pipeline;
    pending.start = choice->start;
    tell_place(pending, choice->pipeline, start, now);
    take_later(later(), pending);
  } else if (says_no(pending, std::nullopt, now)) {
    return;
  }
  pending_.push_back(std::move(pending));
}

bool LiveController::says_no(const Pending& pending, std::optional<Duration> start, Duration now) {
  if (pending.told) return false;
  const Waiting& waiting = pending.waiting;
  const Duration takes = pass_span(model(waiting.model), waiting.whole) + after_stages(waiting);
  const auto& slo = model(waiting.model).slo_ttft;
  std::optional<RefusalReason> reason;
  if (!some_decode_slot(waiting.model))
    reason = RefusalReason::decode;
  else if (!start)
    reason = RefusalReason::closed;
  else if (slo && clock_ + *start + takes - waiting.request.arrival > *slo)
    reason = RefusalReason::slo;
  if (!reason) return false;
  first_answer(waiting.request, now);
  refuse(waiting, *reason);
  return true;
}

void LiveController::tell_place(Pending& pending, std::size_t pipeline, Duration start,
                                Duration now) {
  const Waiting& waiting = pending.waiting;
  const ServedModel& own = model(waiting.model);
  const Duration moved = clock_ + start - pending.told_start;
  const bool is_known =
      pending.told && pending.told_pipeline == pipeline && std::chrono::abs(moved) <= own.guard;
  if (!pending.told) {
    first_answer(waiting.request, now);
    pending.told = clock_ + now;
  }
  if (is_known) return;
  pending.told_pipeline = pipeline;
  pending.told_start = clock_ + start;
  arrivals_.tell({NewsKind::placed, waiting.request.id, waiting.request.arrival,
                  live_.pipelines[pipeline].pipeline.number, pending.told_start,
                  pending.told_start + pass_span(own, waiting.whole) + after_stages(waiting)});
}

void LiveController::first_answer(const Request& request, Duration now) {
  if (!queue_) longest_decision_ = std::max(longest_decision_, clock_ + now - request.arrival);
}

std::int64_t LiveController::stretches_ahead() {
  const std::int64_t open = std::ssize(later().uses) + 1;
  if (!options_.stretches) return open;
  return std::clamp<std::int64_t>(*options_.stretches - played_ - 1, 0, open);
}

LiveController::Later& LiveController::later() {
  if (later_) return *later_;
  later_.emplace(Later{.free = {stretch_, {.from_zero = false, .apart = true}, shortest_}});
  if (options_.memory) later_->memory.emplace(stretch_.period, planned_steps_);
  for (const Pending& each : pending_)
    if (each.pipeline) take_later(*later_, each);
  return *later_;
}

void LiveController::take_later(Later& later, const Pending& pending) {
  const Waiting& waiting = pending.waiting;
  const ServedModel& own = model(waiting.model);
  const auto& ranks = live_.pipelines[*pending.pipeline].pipeline.ranks;
  for (int stage = 0; stage < own.stages; ++stage) {
    const Duration start = pending.start + stage_offset(own, waiting.whole, stage);
    const Duration length = own.stage_time(waiting.whole, stage);
    if (later.free.earliest(ranks[to_size(stage)], start, length, {}, start))
      (void)later.free.take(ranks[to_size(stage)], start, length);
  }
  if (later.memory)
    hold(*later.memory, waiting, *pending.pipeline, pending.start,
         pending.start + released_after(waiting));
  const auto stretch = to_size(pending.start / stretch_.period);
  while (later.uses.size() <= stretch) later.uses.push_back(no_use());
  add_use(later.uses[stretch], *pending.pipeline, waiting.request.tokens);
}

std::optional<LiveController::Choice> LiveController::choose_later(const Waiting& waiting) {
  const Duration limit = stretches_ahead() * stretch_.period - Duration{1};
  std::optional<Choice> best;
  for (std::size_t p = 0; p < live_.pipelines.size(); ++p)
    if (live_.pipelines[p].model == waiting.model && is_open(p))
      keep_better(earliest_later(waiting, p, best ? best->start : limit), p, later().free, best);
  return best;
}

std::optional<Duration> LiveController::earliest_later(const Waiting& waiting, std::size_t pipeline,
                                                       Duration limit) {
  Later& in = later();
  for (Duration from{}; from <= limit;) {
    const auto start = earliest_of(in.free, in.memory, waiting, pipeline, from, limit);
    if (!start) return std::nullopt;
    const std::int64_t stretch = *start / stretch_.period;
    if (has_room_later(in, stretch, pipeline, waiting.request.tokens)) return start;
    from = (stretch + 1) * stretch_.period;
  }
  return std::nullopt;
}

bool LiveController::has_room_later(const Later& later, std::int64_t stretch, std::size_t pipeline,
                                    std::int64_t tokens) const {
  if (stretch >= std::ssize(later.uses)) return has_room(no_use(), pipeline, tokens);
  const StretchUse& use = later.uses[to_size(stretch)];
  if (!has_room(use, pipeline, tokens)) return false;
  if (!live_.sends(model(live_.pipelines[pipeline].model))) return true;
  const Rank decode = decode_rank_of(pipeline);
  const auto held = use.decoding.find(decode);
  return held == use.decoding.end() || held->second < decode_slots(decode);
}

/// It begins no prompts: those with a place there get others.
void LiveController::lose_places_on(std::size_t pipeline) {
  const auto has_none = [&](const Pending& each) { return each.pipeline != pipeline; };
  const auto lost = std::ranges::stable_partition(pending_, has_none);
  if (lost.empty()) return;
  for (Pending& each : lost) each.pipeline.reset();
  arrived_.insert(arrived_.begin(), lost.begin(), lost.end());
  pending_.erase(lost.begin(), lost.end());
  later_.reset();
}

StretchUse LiveController::no_use() const {
  return {std::vector<int>(live_.pipelines.size()), std::vector<std::int64_t>(live_.kv.size()), {}};
}

void LiveController::add_use(StretchUse& use, std::size_t pipeline, std::int64_t tokens) const {
  ++use.placed[pipeline];
  const LivePipeline& own = live_.pipelines[pipeline];
  const ServedModel& by = model(own.model);
  if (!live_.sends(by)) return;
  ++use.decoding[decode_rank_of(pipeline)];
  for (int stage = 0; stage < by.stages; ++stage)
    use.slices[at(own.pipeline.ranks[to_size(stage)])] +=
        std::ssize(kv_slices(by, tokens, stage, live_.sending));
}

bool LiveController::has_room(const StretchUse& use, std::size_t pipeline,
                              std::int64_t tokens) const {
  if (use.placed[pipeline] == live_.slots) return false;
  const LivePipeline& own = live_.pipelines[pipeline];
  const ServedModel& by = model(own.model);
  if (!live_.sends(by)) return true;
  for (int stage = 0; stage < by.stages; ++stage) {
    const std::size_t rank = at(own.pipeline.ranks[to_size(stage)]);
    const auto slices = std::ssize(kv_slices(by, tokens, stage, live_.sending));
    if (use.slices[rank] + slices > std::ssize(live_.kv[rank].sends)) return false;
  }
  return true;
}

Rank LiveController::decode_rank_of(std::size_t pipeline) const {
  return live_.kv[at(live_.pipelines[pipeline].pipeline.ranks.back())].decode;
}

/// None where its GPU may have no slices at all.
int LiveController::decode_slots(Rank decode) const {
  const auto found = std::ranges::find(live_.decodes, decode, &LiveDecode::rank);
  return found == live_.decodes.end() ? 0 : found->slots;
}

bool LiveController::has_decode_slot(std::size_t pipeline) const {
  if (!live_.sends(model(live_.pipelines[pipeline].model))) return true;
  const Rank decode = decode_rank_of(pipeline);
  const auto held = std::ranges::count_if(entries_, [&](const Entry& entry) {
    const std::size_t which = at(entry.answer.pipeline);
    return !entry.is_done && !entry.is_withdrawn && !is_killed(entry) &&
           live_.sends(model(live_.pipelines[which].model)) && decode_rank_of(which) == decode;
  });
  return held < decode_slots(decode);
}

}  // namespace longhaul::prefill
