// What becomes of requests that a live controller was asked for, and who hears of it.
#include <algorithm>

#include "base/index.hpp"
#include "prefill/live/live_controller.hpp"

namespace longhaul::prefill {

void LiveController::stage_ended(const LiveOp& op, const LiveAnswer& answer, Duration end) {
  const auto found = entry_of_.find(answer.request);
  if (found == entry_of_.end()) return;
  if (op.part + 1 != live_.slot(op.pipeline, op.number)[at(op.stage)].parts) return;
  Entry& entry = entries_[found->second];
  entry.ended[at(op.stage)] = true;
  if (to_size(op.stage) + 1 == entry.ended.size()) tell_of(entry, NewsKind::done, end);
}

/// Drained pipelines begin nothing: what they have not begun waits for the next stretch.
void LiveController::heed_drains(Duration now) {
  for (std::size_t p = 0; p < live_.pipelines.size(); ++p) {
    const bool drains = arrivals_.is_drained(live_.pipelines[p].pipeline.number);
    if (drains && !drained_[p])
      for (Entry& entry : entries_)
        if (at(entry.answer.pipeline) == p && withdraw(entry, now)) entry.comes_back = true;
    drained_[p] = drains;
  }
}

/// A request whose sender has gone does not begin any more.
void LiveController::cancel(std::int64_t request, Duration now) {
  const auto is_it = [&](const Waiting& each) { return each.request.id == request; };
  for (auto* waiting : {&arrived_, &pending_}) {
    const auto found = std::ranges::find_if(*waiting, is_it);
    if (found == waiting->end()) continue;
    give_up(*found);
    waiting->erase(found);
    return;
  }
  const auto found = entry_of_.find(static_cast<std::int32_t>(request));
  if (found == entry_of_.end()) return;
  Entry& entry = entries_[found->second];
  if (entry.is_withdrawn || withdraw(entry, now)) entry.comes_back = false;
}

/// Tells its GPU not to begin it; false: it may have begun.
bool LiveController::withdraw(Entry& entry, Duration now) {
  if (entry.is_withdrawn || entry.ended.front() || entry.answer.start <= now) return false;
  entry.is_withdrawn = true;
  LiveAnswer withdrawal = entry.answer;
  withdrawal.is_withdrawn = true;
  outbox_.push_back(withdrawal);
  return true;
}

void LiveController::give_up(const Waiting& waiting) {
  cancelled_.push_back(decision_of(waiting));
  arrivals_.tell({NewsKind::cancelled, waiting.request.id, waiting.request.arrival});
}

/// Times of an entry count from the stretch's begin.
void LiveController::tell_of(const Entry& entry, NewsKind kind, Duration end) {
  const Request& request = entry.waiting.request;
  arrivals_.tell({kind, request.id, request.arrival,
                  live_.pipelines[at(entry.answer.pipeline)].pipeline.number,
                  clock_ + entry.answer.start, clock_ + end});
}

Decision LiveController::decision_of(const Waiting& waiting) const {
  return {.request = waiting.request.id,
          .arrival = waiting.request.arrival,
          .tokens = waiting.request.tokens,
          .model = waiting.model};
}

void LiveController::refuse(const Waiting& waiting, RefusalReason reason) {
  refused_.push_back(decision_of(waiting));
  refused_.back().refused = reason;
  arrivals_.tell({.kind = NewsKind::refused,
                  .request = waiting.request.id,
                  .arrival = waiting.request.arrival,
                  .reason = reason});
}

std::vector<LivePlaced> LiveController::end_stretch(Duration wall,
                                                    const std::set<std::int32_t>& begun,
                                                    const std::map<std::int32_t, Duration>& ended) {
  std::vector<LivePlaced> placed;
  for (const Entry& entry : entries_) {
    if (!begun.contains(entry.answer.request)) {
      if (entry.is_withdrawn && !entry.comes_back)
        give_up(entry.waiting);
      else if (queue_)
        queue_->put_back(entry.waiting);
      else
        pending_.push_back(entry.waiting);
      continue;
    }
    const LivePipeline& own = live_.pipelines[at(entry.answer.pipeline)];
    if (!entry.ended.back()) {
      const auto end = ended.find(entry.answer.request);
      tell_of(entry, end == ended.end() ? NewsKind::failed : NewsKind::done,
              end == ended.end() ? wall : end->second);
    }
    LivePlaced& each = placed.emplace_back();
    each.decision = decision_of(entry.waiting);
    each.decision.arrival -= clock_;
    each.decision.pipeline = own.pipeline.number;
    each.decision.start = entry.answer.start;
    each.decision.end = entry.end;
    each.decision.compute = entry.waiting.whole;
    each.decision.hops = (model(own.model).stages - 1) * model(own.model).hop;
    each.pipeline = entry.answer.pipeline;
    each.answer = entry.number;
  }
  std::ranges::stable_sort(pending_, {}, [](const Waiting& each) {
    return std::pair{each.request.arrival, each.request.id};
  });
  clock_ += wall;
  return placed;
}

void LiveController::close() {
  for (auto* waiting : {&arrived_, &pending_}) {
    for (const Waiting& each : *waiting) refuse(each, RefusalReason::closed);
    waiting->clear();
  }
  for (const Request& request : arrivals_.rest()) {
    Waiting waiting{.request = request};
    refuse(waiting, admit(waiting).value_or(RefusalReason::closed));
  }
}

}  // namespace longhaul::prefill
