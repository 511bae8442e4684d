#pragma once

#include "support/event_rules.hpp"

namespace longhaul::testing {

/// A second simulator of plans with all that plan/extras/ has, written from the rules and too
/// simple to be wrong: it goes from instant to instant, and at each looks at every op of every
/// iteration. For small plans; slowdowns of whole halves, thirds or quarters.
class EventByEvent : EventRules {
public:
  using EventRules::EventRules;

  /// By iteration, those before the first empty; nothing where it deadlocks.
  std::optional<std::vector<OpResults>> run() {
    for (;;) {
      while (step()) {
      }
      const std::int64_t next = next_instant();
      if (next == kNone) {
        if (end_waiting_sources()) continue;
        break;
      }
      pass_time(next);
    }
    std::vector<OpResults> all(static_cast<std::size_t>(stream_.iterations));
    for (std::size_t i = count_ * static_cast<std::size_t>(stream_.first); i < ops_.size(); ++i) {
      if (!ops_[i].served && !ops_[i].skipped) return std::nullopt;
      OpResults& results = all[i / count_];
      const Own& own = ops_[i];
      if (own.skipped)
        results.times.push_back({});
      else
        results.times.push_back(
            {Duration{own.ready}, Duration{own.start}, Duration{own.end}, {}, {}});
      results.outcomes.push_back(own.outcome);
      results.versions.push_back(version_of(i));
    }
    return all;
  }

private:
  /// Does the next thing of this instant; false: there is none.
  bool step() {
    return end_blocks() || skip_some() || start_private() || choose(true) || ask_a_source() ||
           serve_request() || choose(false);
  }
  bool end_blocks() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (!ops_[i].served || ops_[i].hold_end != kNone || ops_[i].left > 0) continue;
      ops_[i].hold_end = ops_[i].end = now_;
      for (const ResourceId held : plan_.resources_of(id(i)))
        *std::ranges::max_element(free_[index(held)]) = now_;
      const auto own = window(i);
      if (own && own->deadline != plan::kNoDeadline &&
          now_ > begun_[static_cast<std::size_t>(iteration(i))] + own->deadline.count())
        ops_[i].outcome = Outcome::late;
      return true;
    }
    return false;
  }
  void skip(std::size_t i, Outcome outcome) {
    if (passed(i)) return;
    ops_[i].skipped = true;
    ops_[i].outcome = outcome;
    if (is_message(i)) skip(other(i), Outcome::skipped);
  }
  bool skip_some() {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (passed(i) || !has_turn(i)) continue;
      bool hopeless = false;
      for (const std::size_t need : needs(i)) hopeless = hopeless || ops_[need].skipped;
      const std::int64_t begun = begun_[static_cast<std::size_t>(iteration(i))];
      hopeless = hopeless || (window(i) && begun != kNone && !fits(i, now_));
      if (!hopeless) continue;
      skip(i, Outcome::skipped);
      return true;
    }
    return false;
  }

  void start(std::size_t i, std::int64_t at) {
    std::vector<std::size_t> together{i};
    if (op(i).kind == OpKind::collective) together = members(i);
    if (op(i).kind == OpKind::send) together.push_back(other(i));
    for (const std::size_t one : together) {
      Own& own = ops_[one];
      own.ready = own_ready(one);
      own.served = true;
      own.start = at;
      if (op(i).kind == OpKind::compute && slows(i)) {
        own.left = duration(i) * kParts;
        for (const ResourceId held : plan_.resources_of(id(i))) earliest(held) = kNone;
        continue;
      }
      own.hold_end = own.end = at + duration(i);
      if (op(one).kind == OpKind::recv) {
        own.end += duration(one);
        continue;
      }
      for (const ResourceId held : plan_.resources_of(id(one))) earliest(held) = own.hold_end;
    }
    if (!optional(i)) begins_.insert({at, iteration(i)});
  }
  bool slows(std::size_t i) const {
    if (plan_.extras.overlap.none()) return false;
    for (const ResourceId held : plan_.resources_of(id(i)))
      if (plan_.resources[index(held)].kind == ResourceKind::device) return true;
    return false;
  }

  /// What only its lane holds, in turn.
  bool start_private() {
    for (const auto& [at, n] : begins_)
      if (at <= now_ && begun_[static_cast<std::size_t>(n)] == kNone) {
        begun_[static_cast<std::size_t>(n)] = at;
        return true;
      }
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (op(i).kind == OpKind::recv || passed(i) || shared_in_order(i)) continue;
      if (plan::serving_of(plan_, id(i)) != Serve::order || pooled(i)) continue;
      bool all = true;
      if (op(i).kind == OpKind::collective) {
        for (const std::size_t member : members(i))
          all = all && own_ready(member) != kNone && holds_free(member);
      } else {
        all = ready(i) != kNone && holds_free(i);
      }
      if (!all) continue;
      start(i, now_);
      return true;
    }
    return false;
  }
  /// Does its lane hold several ops at a time, though it is an order?
  bool pooled(std::size_t i) const {
    if (sourced(i)) return true;
    const Lane& own = lane(i);
    for (std::uint32_t k = 0; k < own.count; ++k)
      if (optional(index(own.first) + k)) return true;
    return false;
  }

  bool serve_request() {
    std::size_t best = ops_.size();
    std::tuple<std::int64_t, std::size_t> least{kNone, 0};
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (op(i).kind == OpKind::recv || passed(i) || !shared_in_order(i)) continue;
      std::int64_t asked = ready(i);
      if (op(i).kind == OpKind::collective) {
        for (const std::size_t member : members(i)) {
          const std::int64_t there = own_ready(member);
          asked = asked == kNone || there == kNone ? kNone : std::max(asked, there);
        }
      }
      if (asked == kNone || std::tuple{asked, i} >= least) continue;
      least = {asked, i};
      best = i;
    }
    if (best == ops_.size()) return false;
    std::int64_t at = std::max(now_, last_start(best));
    std::vector<std::size_t> together{best};
    if (op(best).kind == OpKind::collective) together = members(best);
    if (op(best).kind == OpKind::send) at = std::max(at, last_start(other(best)));
    for (const std::size_t one : together)
      for (const ResourceId held : plan_.resources_of(id(one))) at = std::max(at, earliest(held));
    if (!fits(best, at))
      skip(best, Outcome::skipped);
    else
      start(best, at);
    return true;
  }
  /// Ops of an order start in turn.
  std::int64_t last_start(std::size_t i) const {
    std::int64_t last = 0;
    if (lane(i).serve != Serve::order || sourced(i)) return last;
    const Lane& own = lane(i);
    for (int n = 0; n <= iteration(i); ++n)
      for (std::uint32_t k = 0; k < own.count; ++k) {
        const std::size_t before = static_cast<std::size_t>(n) * count_ + index(own.first) + k;
        if (before < i && ops_[before].served && !optional(before))
          last = std::max(last, ops_[before].start);
      }
    return last;
  }

  /// `orders`: of lanes that are an order, but whose ops may be passed.
  bool choose(bool orders) {
    std::size_t best = ops_.size();
    std::tuple<bool, std::int64_t, std::int64_t, std::size_t> least{true, kNone, 0, 0};
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (op(i).kind == OpKind::recv || op(i).kind == OpKind::collective || passed(i)) continue;
      const Serve serve = plan::serving_of(plan_, id(i));
      if (serve == Serve::order && (!orders || !pooled(i) || shared_in_order(i))) continue;
      if (serve != Serve::order && orders) continue;
      if (ready(i) == kNone || !holds_free(i)) continue;
      std::int64_t priority = 0;
      for (const plan::OpPriority& each : plan_.extras.priorities)
        if (each.op == id(i)) priority = each.priority;
      std::tuple<bool, std::int64_t, std::int64_t, std::size_t> key{false, iteration(i), 0,
                                                                    i % count_};
      if (serve == Serve::arrival) key = {true, ready(i), iteration(i), i % count_};
      if (serve == Serve::deadline) key = {false, iteration(i), priority, i % count_};
      if (key >= least) continue;
      least = key;
      best = i;
    }
    if (best == ops_.size()) return false;
    if (fits(best, now_))
      start(best, now_);
    else
      skip(best, Outcome::skipped);
    return true;
  }

  bool ask_a_source() {
    for (auto& [lane_index, state] : sources_) {
      if (state.over) continue;
      if (state.drawn < ops_.size()) {
        const Own& drawn = ops_[state.drawn];
        if (!drawn.skipped && drawn.hold_end > now_) continue;
        state.drawn = ops_.size();
        state.until = now_;
      }
      std::vector<plan::OpEnd> news;
      for (std::size_t i = 0; i < ops_.size(); ++i)
        if (iteration(i) >= stream_.first && ops_[i].served && ops_[i].end <= now_ &&
            !state.heard.contains({ops_[i].end, iteration(i), i}))
          news.push_back({id(i), iteration(i), Duration{ops_[i].end}, ops_[i].words});
      const bool hears = state.waits_for_end && !news.empty();
      if (!hears && state.until > now_) continue;
      std::ranges::sort(news, {}, [](const plan::OpEnd& end) {
        return std::tuple{end.end, end.iteration, end.op};
      });
      for (const plan::OpEnd& end : news)
        state.heard.insert({end.end.count(), end.iteration,
                            static_cast<std::size_t>(end.iteration) * count_ + index(end.op)});
      state.waits_for_end = false;
      const plan::Decision decision =
          state.source->next(plan::PastEvents{Duration{now_}, state.iteration, news});
      if (const auto* draw = std::get_if<plan::Draw>(&decision)) {
        state.drawn = static_cast<std::size_t>(state.iteration) * count_ + index(draw->op);
        ops_[state.drawn].drawn = true;
        ops_[state.drawn].takes = draw->takes;
        ops_[state.drawn].words = draw->words;
      } else if (const auto* wait = std::get_if<plan::WaitUntil>(&decision)) {
        state.until = wait->time.count();
      } else if (const auto* for_end = std::get_if<plan::WaitForEnd>(&decision)) {
        state.waits_for_end = true;
        state.until = for_end->until.count();
      } else {
        end_iteration(lane_index, state);
      }
      return true;
    }
    return false;
  }
  void end_iteration(std::size_t lane_index, SourceState& state) {
    const Lane& own = plan_.lanes[lane_index];
    for (std::uint32_t k = 0; k < own.count; ++k) {
      const std::size_t i =
          static_cast<std::size_t>(state.iteration) * count_ + index(own.first) + k;
      if (!ops_[i].drawn) skip(i, Outcome::undrawn);
    }
    state.waits_for_end = false;
    state.until = now_;
    state.over = ++state.iteration == stream_.iterations;
  }
  bool end_waiting_sources() {
    bool ended_one = false;
    for (auto& [lane_index, state] : sources_) {
      if (state.over || !state.waits_for_end) continue;
      end_iteration(lane_index, state);
      ended_one = true;
    }
    return ended_one;
  }

  /// Parts of a nanosecond's work that a block of the rank does in one, now.
  std::int64_t rate(Rank rank) const {
    std::int64_t least = kParts;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (op(i).kind != OpKind::send || !ops_[i].served) continue;
      if (ops_[i].start > now_ || ops_[i].hold_end <= now_) continue;
      if (plan_.rank_of(id(i)) != rank && op(i).peer != rank) continue;
      const std::int64_t slowdown = plan_.extras.overlap.at(plan_.level_of(id(i)));
      least = std::min(least, kParts * plan::Overlap::kNone / slowdown);
    }
    return least;
  }
  std::int64_t next_instant() const {
    std::int64_t next = kNone;
    const auto meet = [&](std::int64_t at) {
      if (at > now_) next = std::min(next, at);
    };
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const Own& own = ops_[i];
      for (const std::int64_t at : {own.start, own.hold_end, own.end}) meet(at);
      if (own.served && own.hold_end == kNone) {
        const std::int64_t speed = rate(plan_.rank_of(id(i)));
        meet(now_ + (own.left + speed - 1) / speed);
      }
      const std::int64_t begun = begun_[static_cast<std::size_t>(iteration(i))];
      if (const auto of_op = window(i); of_op && begun != kNone && has_turn(i)) {
        const auto all = needs(i);
        if (std::ranges::all_of(all, [&](std::size_t need) { return ended(need); }))
          meet(begun + of_op->not_before.count());
        if (of_op->deadline != plan::kNoDeadline)
          meet(begun + of_op->deadline.count() - duration(i) + 1);
      }
    }
    for (const auto& [at, n] : begins_) meet(at);
    for (const auto& [lane_index, state] : sources_)
      if (!state.over) meet(state.until);
    return next;
  }
  void pass_time(std::int64_t next) {
    std::vector<std::int64_t> speeds;
    for (std::int32_t r = 0; r < std::ssize(plan_.ranks); ++r) speeds.push_back(rate(Rank{r}));
    for (std::size_t i = 0; i < ops_.size(); ++i)
      if (ops_[i].served && ops_[i].hold_end == kNone)
        ops_[i].left -= (next - now_) * speeds[index(plan_.rank_of(id(i)))];
    now_ = next;
  }
  std::int32_t version_of(std::size_t i) const {
    std::int32_t version = -1;
    if (ops_[i].skipped) return version;
    for (const plan::FarDependency& far : plan_.extras.far) {
      if (far.op != id(i) || far.strength == plan::Strength::strong) continue;
      for (int n = 0; n <= iteration(i) - far.iterations_back; ++n) {
        const Own& before = ops_[static_cast<std::size_t>(n) * count_ + index(far.before)];
        if (before.served && before.end <= ops_[i].start) version = n;
      }
    }
    return version;
  }
};

}  // namespace longhaul::testing
