#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "engine/op_states.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::engine {

struct EventMessage;

/// An op of an iteration on this rank. Stamps are of this host's clock.
struct OpInstance {
  /// away: its lane has not come to it; posted: what it depends on has ended; arrived: it asks for
  /// what it holds; served: when it starts is fixed.
  enum class Stage : std::uint8_t { away, admitted, posted, arrived, served, ended, skipped };
  OpId op{};
  int iteration = 0;
  Stage stage = Stage::away;
  Outcome outcome = Outcome::ran;
  bool holds = false;  ///< resources that choose
  std::int32_t version = -1;
  OpTime time{};
  TimePoint other_ready = kNever;  ///< of a send: when its receiver was ready
  TimePoint other_lane = {};       ///< and since when its lane lets it start
  TimePoint wakes = kNever;        ///< the last timer set for it
  TimePoint deadline = kNever;     ///< as it was known when it started
  Cause cause;                     ///< what it waited for last, as it was due
  EventMessage* message = nullptr;
};

/// The ops of this rank in the iterations that are under way. Iterations are opened and closed in
/// order: the oldest once it, and as many after it as dependencies reach back, are complete.
class LiveOps {
public:
  LiveOps(const Plan& plan, Rank self, int reach);
  /// Begins anew, with this iteration.
  void clear(int first);

  /// Opens iterations up to this one.
  void open(int iteration);
  /// Opens them as open() does.
  OpInstance& at(OpId op, int iteration);
  /// nullptr: its iteration is not open.
  [[nodiscard]] OpInstance* find(OpId op, int iteration);
  [[nodiscard]] bool is_mine(OpId op) const {
    return index(op) >= range_.first && index(op) < range_.first + range_.count;
  }
  [[nodiscard]] int oldest() const { return oldest_; }
  [[nodiscard]] const OpRange& range() const { return range_; }

  /// The end of an instance, or its version, is known for good.
  void settle(const OpInstance& op) { --slot(op.iteration).unsettled; }
  void expect_more(const OpInstance& op) { ++slot(op.iteration).unsettled; }

  /// Is the next iteration to be handed over complete?
  [[nodiscard]] bool has_complete() const;
  /// The ops of the next complete one, until release_complete().
  [[nodiscard]] std::vector<OpInstance>& complete();
  [[nodiscard]] int next_to_hand_over() const { return handed_; }
  void release_complete();
  [[nodiscard]] std::size_t most_live() const { return most_live_; }

private:
  struct Slot {
    std::vector<OpInstance> ops;
    std::uint32_t unsettled = 0;
  };
  Slot& slot(int iteration) { return *live_[static_cast<std::size_t>(iteration - oldest_)]; }
  void open_next();

  OpRange range_;
  int reach_;
  int oldest_ = 0;
  int handed_ = 0;
  std::size_t most_live_ = 0;
  std::deque<std::unique_ptr<Slot>> live_;
  std::vector<std::unique_ptr<Slot>> unused_;
};

}  // namespace longhaul::engine
