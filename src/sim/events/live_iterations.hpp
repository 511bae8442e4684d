#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::sim {

/// What the driver keeps of ops. An instance is an op of an iteration; its number holds the place
/// of the iteration's records above the op's id. Of a run of one iteration it is the op's id.
///
/// Iterations are opened in order and closed in order: the oldest once it and as many after it as
/// dependencies reach back are complete. What it needs is thus bounded by the reach and by how far
/// lanes run apart, not by the number of iterations.
class LiveIterations {
public:
  static constexpr Duration kPending{-1};
  /// The end of an instance that does not run.
  static constexpr Duration kNever{-2};
  static constexpr std::uint32_t kNoWaiter = 0xffffffff;

  enum class Notes : std::uint8_t { none, kept };
  /// How far an instance is that its lane does not bring forward as its head, or that waits for a
  /// choice.
  enum class Stage : std::uint8_t { away, admitted, posted, arrived, served };
  /// `reach`: how many iterations dependencies go back. `notes`: whether all beside times is kept.
  /// `first`: the iteration to begin with.
  LiveIterations(const Plan& plan, int reach, Notes notes, int first);

  [[nodiscard]] std::uint32_t op(std::uint32_t instance) const { return instance & mask_; }
  [[nodiscard]] OpId id(std::uint32_t instance) const { return OpId{instance & mask_}; }
  [[nodiscard]] int iteration(std::uint32_t instance) const {
    return slots_[instance >> shift_].iteration;
  }
  [[nodiscard]] std::uint32_t base(std::uint32_t instance) const { return instance & ~mask_; }
  /// The instance of op 0 in an iteration that is live.
  [[nodiscard]] std::uint32_t base_of(int iteration) const {
    return live_[static_cast<std::size_t>(iteration - oldest_)] << shift_;
  }
  [[nodiscard]] bool is_open(int iteration) const {
    return iteration >= oldest_ && iteration < oldest_ + static_cast<int>(live_.size());
  }
  [[nodiscard]] int oldest() const { return oldest_; }

  /// Opens iterations up to this one; gives back op 0 of it.
  std::uint32_t open(int iteration);
  /// An op's end, or its version, is known for good.
  void settle(std::uint32_t instance) { --slots_[instance >> shift_].unsettled; }
  void expect_more(std::uint32_t instance) { ++slots_[instance >> shift_].unsettled; }

  /// Is the next iteration to be handed over complete?
  [[nodiscard]] bool has_complete() const {
    return is_open(handed_) &&
           slots_[live_[static_cast<std::size_t>(handed_ - oldest_)]].unsettled == 0;
  }
  struct Complete {
    int iteration = 0;
    OpResults results;
  };
  /// The next complete one; closes those that no one can ask for any more.
  [[nodiscard]] Complete take();
  /// Gives the records of the only iteration away.
  [[nodiscard]] OpResults take_only();

  [[nodiscard]] std::size_t most_live() const { return slots_.size(); }

  std::vector<OpTime> times;  ///< by instance; see LaneSweep for what stands in a pending one
  std::vector<std::uint32_t> next_waiter;  ///< by instance: chain of ops that wait for one op
  std::vector<Stage> stages;               ///< by instance
  std::vector<Outcome> outcomes;           ///< by instance; empty: all run
  std::vector<std::int32_t> versions;      ///< by instance; empty: none

private:
  struct Slot {
    int iteration = 0;
    std::size_t unsettled = 0;
  };
  void add_slot();
  void clear(std::size_t slot);
  [[nodiscard]] OpResults copy_of(std::size_t slot) const;

  std::size_t ops_;
  std::uint32_t shift_ = 0;
  std::uint32_t mask_ = 0;
  int reach_;
  Notes notes_;
  int oldest_ = 0;  ///< iteration of live_.front()
  int handed_ = 0;  ///< the next to be handed over
  std::vector<Slot> slots_;
  std::deque<std::uint32_t> live_;  ///< slots by iteration
  std::vector<std::uint32_t> unused_;
};

}  // namespace longhaul::sim
