// What becomes of requests that a live controller was asked for, and who hears of it.
#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "prefill/live/live_controller.hpp"
#include "prefill/live/live_kv.hpp"

namespace longhaul::prefill {
namespace {

/// How soon to ask again whether the run ends.
constexpr Duration kAskAgain = std::chrono::milliseconds{20};

}  // namespace

void LiveController::stage_ended(const LiveOp& op, const LiveAnswer& answer, Duration end) {
  const auto found = entry_of_.find(answer.request);
  if (found == entry_of_.end()) return;
  Entry& entry = entries_[found->second];
  if (op.part + 1 != live_.slot(op.pipeline, op.number)[at(op.stage)].parts) {
    entry.layer_end = end;
    entry.next_block =
        expected_.next_block(live_.pipelines[at(op.pipeline)].pipeline.ranks[to_size(op.stage)]);
    return;
  }
  entry.ended[at(op.stage)] = true;
  if (to_size(op.stage) + 1 < entry.ended.size()) return;
  if (live_.sends(model(live_.pipelines[at(op.pipeline)].model))) return;
  entry.is_done = true;
  tell_of(entry, NewsKind::done, end);
}

void LiveController::token_ended(const LiveAnswer& answer, Duration end) {
  const auto found = entry_of_.find(answer.request);
  if (found == entry_of_.end()) return;
  entries_[found->second].is_done = true;
  tell_of(entries_[found->second], NewsKind::done, end);
}

bool LiveController::some_decode_slot(std::size_t model) const {
  for (std::size_t p = 0; p < live_.pipelines.size(); ++p)
    if (live_.pipelines[p].model == model && !is_dead_[p] && has_decode_slot(p)) return true;
  return false;
}

Duration LiveController::after_stages(const Waiting& waiting) const {
  const ServedModel& own = model(waiting.model);
  if (!live_.sends(own)) return {};
  return kv_tail(own, waiting.request.tokens, waiting.whole, live_.sending) +
         own.decode->first_token;
}

void LiveController::heed_closing(Duration now) {
  if (!options_.closes || is_closing_) return;
  is_closing_ = options_.closes();
  if (!is_closing_) look_ = std::min(look_, now + kAskAgain);
}

void LiveController::heed_deaths(Duration now) {
  for (const ControllerDeath& death : options_.deaths) {
    if (death.at > clock_ + now) {
      look_ = std::min(look_, death.at - clock_);
      continue;
    }
    for (std::size_t p = 0; p < live_.pipelines.size(); ++p) {
      if (live_.pipelines[p].datacenter != death.datacenter || is_dead_[p]) continue;
      is_dead_[p] = true;
      for (const Pending& each : pending_)
        if (each.pipeline == p) fail_by(death.datacenter, each.waiting);
      if (std::erase_if(pending_, [&](const Pending& each) { return each.pipeline == p; }) > 0)
        later_.reset();
    }
  }
}

std::optional<DatacenterId> LiveController::all_dead_of(std::size_t model) const {
  std::optional<DatacenterId> dead;
  for (std::size_t p = 0; p < live_.pipelines.size(); ++p) {
    if (live_.pipelines[p].model != model) continue;
    if (!is_dead_[p]) return std::nullopt;
    dead = live_.pipelines[p].datacenter;
  }
  return dead;
}

void LiveController::fail_by(DatacenterId datacenter, const Waiting& waiting) {
  failed_.push_back(decision_of(waiting));
  failed_.back().datacenter = static_cast<std::int32_t>(index(datacenter));
  const auto& names = live_.plan.datacenters;
  arrivals_.tell({.kind = NewsKind::failed,
                  .request = waiting.request.id,
                  .arrival = waiting.request.arrival,
                  .why = gone_controller(index(datacenter) < names.size() ? names[index(datacenter)]
                                                                          : std::string{})});
}

/// Drained pipelines begin nothing: what they have not begun waits for the next stretch.
void LiveController::heed_drains(Duration now) {
  for (std::size_t p = 0; p < live_.pipelines.size(); ++p) {
    const LivePipeline& own = live_.pipelines[p];
    const bool drains = is_closing_ || arrivals_.is_drained(own.model, own.pipeline.number);
    if (drains && !drained_[p])
      for (Entry& entry : entries_)
        if (at(entry.answer.pipeline) == p && withdraw(entry, now)) entry.comes_back = true;
    if (drains && !drained_[p]) lose_places_on(p);
    drained_[p] = drains;
  }
}

/// A request whose sender has gone does not begin any more.
void LiveController::cancel(std::int64_t request, Duration now) {
  const auto is_it = [&](const Pending& each) { return each.waiting.request.id == request; };
  for (auto* waiting : {&arrived_, &pending_}) {
    const auto found = std::ranges::find_if(*waiting, is_it);
    if (found == waiting->end()) continue;
    give_up(found->waiting);
    if (found->pipeline) later_.reset();
    waiting->erase(found);
    return;
  }
  const auto found = entry_of_.find(static_cast<std::int32_t>(request));
  if (found == entry_of_.end()) return;
  Entry& entry = entries_[found->second];
  entry.is_given_up = true;
  if (entry.is_withdrawn || withdraw(entry, now)) entry.comes_back = false;
}

/// Tells its GPU not to begin it; false: it may have begun, or no one is left to say so.
bool LiveController::withdraw(Entry& entry, Duration now) {
  if (is_dead_[at(entry.answer.pipeline)]) return false;
  if (entry.is_withdrawn || entry.ended.front() || entry.answer.start <= now) return false;
  entry.is_withdrawn = true;
  LiveAnswer withdrawal = entry.answer;
  withdrawal.is_withdrawn = true;
  outbox_.push_back(withdrawal);
  return true;
}

/// As the GPU decides it, when it hears the same by then. What it heard later, and goes on with,
/// counts again as its next layer ends.
bool LiveController::is_killed(const Entry& entry) const {
  const bool is_in_layers = entry.layer_end >= Duration{} && !entry.ended.front();
  if (options_.overrun != Overrun::kill || !is_in_layers) return false;
  const std::int32_t rank = live_.pipelines[at(entry.answer.pipeline)].pipeline.ranks.front();
  return expected_.next_block(rank) > entry.next_block ||
         expected_.ready_at(rank) <= entry.layer_end;
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
  if (reason == RefusalReason::memory) refused_.back().lacks = lacking_memory(waiting);
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
      if (entry.is_given_up || (entry.is_withdrawn && !entry.comes_back))
        give_up(entry.waiting);
      else if (queue_)
        queue_->put_back(entry.waiting);
      else if (const auto p = at(entry.answer.pipeline); is_dead_[p])
        fail_by(live_.pipelines[p].datacenter, entry.waiting);
      else
        pending_.push_back({.waiting = entry.waiting,
                            .told = entry.told,
                            .told_pipeline = at(entry.answer.pipeline),
                            .told_start = clock_ + entry.answer.start});
      continue;
    }
    const LivePipeline& own = live_.pipelines[at(entry.answer.pipeline)];
    if (!entry.is_done) {
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
    if (live_.sends(model(own.model))) {
      each.decision.first_token = model(own.model).decode->first_token;
      each.decision.kv = after_stages(entry.waiting) - each.decision.first_token;
    }
    each.pipeline = entry.answer.pipeline;
    each.answer = entry.number;
    each.told = entry.told - clock_;
  }
  std::ranges::stable_sort(pending_, {}, [](const Pending& each) {
    return std::pair{each.waiting.request.arrival, each.waiting.request.id};
  });
  clock_ += wall;
  ++played_;
  entries_.clear();
  entry_of_.clear();
  return placed;
}

std::vector<Decision> LiveController::waiting() const {
  std::vector<Decision> all;
  for (const auto* waiting : {&arrived_, &pending_})
    for (const Pending& each : *waiting) all.push_back(decision_of(each.waiting));
  return all;
}

std::vector<std::int64_t> LiveController::open_on(Rank rank) const {
  const auto is_on = [&](std::size_t pipeline) {
    const LivePipeline& own = live_.pipelines[pipeline];
    const bool decodes = live_.sends(model(own.model)) && decode_rank_of(pipeline) == rank;
    return decodes || std::ranges::count(own.pipeline.ranks, number(rank)) > 0;
  };
  std::vector<std::int64_t> open;
  for (const Entry& entry : entries_)
    if (!entry.is_done && !entry.is_withdrawn && is_on(at(entry.answer.pipeline)))
      open.push_back(entry.answer.request);
  for (const auto* waiting : {&arrived_, &pending_})
    for (const Pending& each : *waiting)
      if (each.told && is_on(each.told_pipeline)) open.push_back(each.waiting.request.id);
  std::ranges::sort(open);
  return open;
}

void LiveController::refuse_waiting() {
  for (auto* waiting : {&arrived_, &pending_})
    for (const Pending& each : std::exchange(*waiting, {}))
      refuse(each.waiting, RefusalReason::closed);
  later_.reset();
}

void LiveController::close() {
  refuse_waiting();
  for (const Request& request : arrivals_.rest()) {
    Waiting waiting{.request = request};
    refuse(waiting, admit(waiting).value_or(RefusalReason::closed));
  }
}

}  // namespace longhaul::prefill
