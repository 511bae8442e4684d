// What is decided at the end of an instant, one thing after the other.
#include <algorithm>
#include <map>
#include <utility>

#include "base/index.hpp"
#include "engine/events/event_player.hpp"
#include "plan/check_extras.hpp"

namespace longhaul::engine {

/// What is held together stands in one table, and so does all that shares something with it:
/// `shared` are resources of several ranks.
void EventPlayer::find_shared_sets(std::vector<bool>& shared) {
  shared_set_.assign(plan_.set_begin.empty() ? 0 : plan_.set_begin.size() - 1, false);
  for (bool grows = true; std::exchange(grows, false);) {
    for (std::size_t set = 0; set < shared_set_.size(); ++set) {
      const auto first = plan_.set_items.begin() + plan_.set_begin[set];
      const auto last = plan_.set_items.begin() + plan_.set_begin[set + 1];
      if (shared_set_[set] ||
          std::none_of(first, last, [&](ResourceId held) { return shared[index(held)]; }))
        continue;
      shared_set_[set] = grows = true;
      for (auto held = first; held != last; ++held) shared[index(*held)] = true;
    }
  }
}

void EventPlayer::make_tables() {
  const comm::HostRanks& host_ranks = state_.host_ranks;
  const Rank self = host_ranks.self();
  sharers_.resize(plan_.resources.size());
  std::vector<std::vector<Rank>> holders(plan_.resources.size());
  for (const Lane& lane : plan_.lanes) {
    if (lane.kind == OpKind::recv || lane.count == 0) continue;
    for (const ResourceId held : plan_.resources_of(lane.first)) {
      auto& ranks = holders[index(held)];
      if (std::ranges::find(ranks, lane.rank) == ranks.end()) ranks.push_back(lane.rank);
    }
  }
  std::vector<bool> shared(plan_.resources.size(), false);
  for (std::size_t i = 0; i < shared.size(); ++i) shared[i] = holders[i].size() > 1;
  find_shared_sets(shared);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    for (const Rank rank : holders[i]) {
      if (host_ranks.host_of(rank) != host_ranks.host_of(holders[i].front()))
        fail(
            "the plan of {} has \"{}\", which ranks of several hosts hold (beside what waits, "
            "ranks of one host play that). Simulate it.",
            plan_.schedule, plan_.resources[i].name);
      if (rank != self) sharers_[i].push_back(rank);
    }
  }
  own_memory_.resize(HoldTable::bytes(plan_, 1));
  own_.emplace(plan_, own_memory_.data(), true, 1, 0);
  if (std::ranges::find(shared_set_, true) == shared_set_.end()) return;
  const auto ranks = to_size(host_ranks.local_ranks());
  const auto& local = host_ranks.local();
  shared_memory_ =
      std::make_unique<comm::SharedMemory>(host_ranks.host(), HoldTable::bytes(plan_, ranks));
  shared_.emplace(plan_, shared_memory_->data(), host_ranks.host().rank() == 0, ranks,
                  to_size(std::ranges::find(local, self) - local.begin()));
  host_ranks.host().barrier();
}

/// A lane that is an order is by (iteration, op), after that deadline by (iteration, priority, op),
/// and after these arrival by (ready, iteration, op), as is what serves in order of readiness.
ChoiceKey EventPlayer::key_of(const OpInstance& op) const {
  ChoiceKey key{op.iteration, 0, static_cast<std::uint32_t>(op.op)};
  const bool request = facts_.access_of(plan_.op(op.op)) == Access::request;
  const Serve serve = request ? Serve::arrival : plan::serving_of(plan_, op.op);
  if (serve == Serve::arrival) {
    TimePoint ready = op.time.ready;
    if (op.other_ready != kNever) ready = std::max(ready, op.other_ready);
    key.first = (request ? 0 : plan::kFarApart) + (ready - began_).count();
    key.second = op.iteration;
  } else if (serve == Serve::deadline) {
    const auto priority = facts_.priorities.find(op.op);
    key.second = priority == facts_.priorities.end() ? 0 : priority->second;
  } else {
    key.first -= plan::kFarApart;
  }
  return key;
}

OpInstance* EventPlayer::first_to_serve() const {
  OpInstance* first = nullptr;
  for (OpInstance* const op : asked_) {
    if (facts_.access_of(plan_.op(op->op)) != Access::request) continue;
    if (first == nullptr || key_of(*op) < key_of(*first)) first = op;
  }
  return first;
}

/// Of those whose resources are free.
OpInstance* EventPlayer::first_to_choose() const {
  OpInstance* first = nullptr;
  for (OpInstance* const op : asked_) {
    if (facts_.access_of(plan_.op(op->op)) != Access::choice) continue;
    if (!table_of(op->op).is_free(op->op)) continue;
    if (first == nullptr || key_of(*op) < key_of(*first)) first = op;
  }
  return first;
}

EventPlayer::Sources::Entry* EventPlayer::first_due_source() {
  for (Sources::Entry& entry : sources_.entries())
    if (sources_.is_due(entry, now())) return &entry;
  return nullptr;
}

std::optional<Arbiter::Request> EventPlayer::first_request() {
  const auto request = [&](Step step, const OpInstance& op) {
    const ChoiceKey key = key_of(op);
    return Request{step, key.first, key.second, key.op};
  };
  const auto* const chosen = first_to_choose();
  if (chosen != nullptr && key_of(*chosen).first < 0) return request(Step::order, *chosen);
  if (asks_ == nullptr)
    if (const auto* const entry = first_due_source())
      return Request{Step::source, static_cast<std::int64_t>(index(entry->lane)), 0, 0};
  if (const auto* const op = first_to_serve()) return request(Step::request, *op);
  if (chosen != nullptr) return request(Step::choice, *chosen);
  if (!unmet_.empty() && !meets_) return Request{Step::version, 0, 0, 0};
  return std::nullopt;
}

/// On the thread of another rank: this one is woken, and heeds it.
void EventPlayer::decide_first() {
  const TimePoint at = now();
  auto* const chosen = first_to_choose();
  if (chosen != nullptr && key_of(*chosen).first < 0)
    choose(*chosen, at);
  else if (auto* const entry = asks_ == nullptr ? first_due_source() : nullptr)
    asks_ = entry;
  else if (auto* const asks = first_to_serve())
    serve(*asks, at);
  else if (chosen != nullptr)
    choose(*chosen, at);
  else
    meets_ = true;
  state_.host_ranks.ring_doorbell(state_.host_ranks.self());
}

bool EventPlayer::decide(TimePoint at) {
  if (auto* const entry = first_due_source()) {
    asks_ = entry;
    return true;
  }
  if (auto* const asks = first_to_serve()) {
    serve(*asks, at);
    return true;
  }
  if (choose_here(at)) return true;
  if (unmet_.empty()) return false;
  meets_ = true;
  return true;
}

/// Gives it a place on all that it holds, from when all of it is free of those served before.
void EventPlayer::serve(OpInstance& op, TimePoint at) {
  const LaneState& lane = lane_of(op.op);
  forget_asked(op);
  TimePoint own = std::max(op.time.ready, op.other_lane);
  if (op.other_ready != kNever) own = std::max(own, op.other_ready);
  if (lane.way != Way::in_turn) own = std::max(own, at);
  const TimePoint from = std::max(own, lane.last_start);
  const Cause before = op.cause;
  Decided& decided = decided_.emplace_back(Decided{&op, from, true});
  const auto free = table_of(op.op).serve(op.op, from, [&](TimePoint start) {
    decided.start = start;
    decided.misses = misses_deadline(op, start, at);
    const bool sends = plan_.op(op.op).kind == OpKind::send;
    const Duration takes =
        sends ? hold_time(op.op, op.iteration, start) : duration_of(op.op, op.iteration);
    return decided.misses ? std::nullopt : std::optional{start + takes};
  });
  op.cause.raise(lane.last_start, lane.last, BoundKind::lane);
  if (!free) return;
  op.cause.raise(free->at, free->holder, BoundKind::resource);
  if (keeps_places(op)) note_place(op, own, duration_of(op.op, op.iteration), before);
}

/// Whose turn it is takes what it holds; one that would miss its deadline leaves it.
void EventPlayer::choose(OpInstance& op, TimePoint at) {
  forget_asked(op);
  const bool misses = misses_deadline(op, at, at);
  decided_.push_back({&op, at, misses});
  if (misses) return;
  const HoldTable::Free last = table_of(op.op).last_release(op.op);
  op.cause.raise(last.at, last.holder, BoundKind::resource);
  table_of(op.op).take(op.op);
  op.holds = true;
}

/// By the host's clock other ranks choose at the same time: who takes looks at what they want.
bool EventPlayer::choose_here(TimePoint at) {
  tell_wants();
  std::vector<OpInstance*> able;
  for (OpInstance* const op : asked_)
    if (facts_.access_of(plan_.op(op->op)) == Access::choice) able.push_back(op);
  std::ranges::sort(able, {}, [&](const OpInstance* op) { return key_of(*op); });
  for (OpInstance* const op : able) {
    HoldTable& table = table_of(op->op);
    if (!table.is_free(op->op)) continue;
    const HoldTable::Free last = table.last_release(op->op);
    if (const TimePoint from = settled(*op, last.at); at < from) {
      if (op->wakes != from) set_timer(from, Timer::Kind::wake, *op);
      op->wakes = from;
      continue;
    }
    const bool misses = misses_deadline(*op, at, at);
    if (!misses && !table.take_first(op->op, key_of(*op))) continue;
    forget_asked(*op);
    op->cause.raise(last.at, last.holder, BoundKind::resource);
    op->holds = !misses;
    decided_.push_back({op, at, misses});
    tell_wants();
    return true;
  }
  return false;
}

/// When the choice of an instant is made of what several ranks hold: what gets ready on another of
/// them in the same instant is seen a little later. Credit takes the wait back.
TimePoint EventPlayer::settled(const OpInstance& op, TimePoint freed) const {
  constexpr Duration kSettles = std::chrono::microseconds{200};
  if (!shared_set_[index(plan_.op(op.op).resources)]) return TimePoint{};
  TimePoint from = std::max(op.time.ready, freed);
  if (op.other_ready != kNever) from = std::max(from, op.other_ready);
  const Duration takes = duration_of(op.op, op.iteration);
  return from + std::min(kSettles, most_credit(state_.options.credit, takes) / 2);
}

/// What this rank would start first, of each resource that others hold too.
void EventPlayer::tell_wants() {
  if (!shared_) return;
  std::map<ResourceId, ChoiceKey> first;
  for (const OpInstance* const op : asked_) {
    if (!shared_set_[index(plan_.op(op->op).resources)]) continue;
    const ChoiceKey key = key_of(*op);
    for (const ResourceId held : plan_.resources_of(op->op)) {
      const auto [place, fresh] = first.emplace(held, key);
      if (!fresh) place->second = std::min(place->second, key);
    }
  }
  for (std::size_t i = 0; i < plan_.resources.size(); ++i) {
    if (sharers_[i].empty() || plan_.resources[i].serve == Serve::order) continue;
    const ResourceId resource{static_cast<std::uint32_t>(i)};
    const auto found = first.find(resource);
    shared_->want(resource, found == first.end() ? std::nullopt : std::optional{found->second});
  }
}

void EventPlayer::let_go(OpInstance& op, TimePoint due) {
  op.holds = false;
  table_of(op.op).let_go(op.op, due);
  if (virtual_clock() != nullptr) return;
  for (const ResourceId held : plan_.resources_of(op.op))
    for (const Rank rank : sharers_[index(held)]) state_.host_ranks.ring_doorbell(rank);
}

void EventPlayer::forget_asked(OpInstance& op) { std::erase(asked_, &op); }

}  // namespace longhaul::engine
