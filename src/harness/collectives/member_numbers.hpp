#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "harness/collectives/step_numbers.hpp"
#include "plan/steps/collective_steps.hpp"

namespace longhaul::harness {

/// Numbers of one item in one piece, where they lie in a member's memory.
struct ItemPart {
  std::uint32_t item = 0;
  std::size_t first = 0, size = 0;
};

/// Numbers of a member's memory: of the vector, or of all vectors of an all-to-all.
[[nodiscard]] std::size_t numbers_of_memory(const plan::Collective& collective);

/// What a member has of a collective's f32 numbers, in two memories of numbers_of_memory(): what it
/// brings, and the result. Which of them holds an item is known piece by piece, so that nothing is
/// copied that only leaves. In place there is the result alone.
class MemberNumbers {
public:
  /// All of these outlive it. `input` is null in place. `self` is a member.
  MemberNumbers(const plan::Collective& collective, const plan::CollectiveSteps& steps, int self,
                float* input, float* work);

  /// Fills in what this member brings.
  void begin_iteration(int iteration);
  /// What this member brings and keeps, into the memory of the result.
  void take_over_own();
  /// Items that this member should have got, and did not, in the last iteration.
  [[nodiscard]] std::int64_t wrong_items() const;

  [[nodiscard]] std::vector<ItemPart> parts_of(const plan::StepMessage& message) const;
  [[nodiscard]] bool in_work(const ItemPart& part, int piece) const;
  void set_in_work(const ItemPart& part, int piece);
  void bring_to_work(const ItemPart& part, int piece);
  /// Where its numbers are now.
  [[nodiscard]] const float* source_of(const ItemPart& part, int piece) const;
  [[nodiscard]] float* work() const { return work_; }

private:
  [[nodiscard]] std::size_t share() const;

  const plan::Collective& collective_;
  const plan::CollectiveSteps& steps_;
  int self_;
  float* input_;
  float* work_;
  int iteration_ = 0;
  std::vector<char> in_work_;  ///< by piece, item
};

/// What must be over before a message's numbers are put in place: they touch the same items.
struct PlaceAfter {
  std::vector<std::uint32_t> left{};    ///< own messages that must have left
  std::vector<std::uint32_t> placed{};  ///< arrivals that must be in place
  bool alone = true;                    ///< no other one adds to the same items
};

/// A member's messages of one stream.
struct MemberStream {
  struct Received {
    std::uint32_t message = 0;
    PlaceAfter after{};
  };
  std::vector<std::uint32_t> sent;
  std::vector<Received> received;  ///< by step
};
[[nodiscard]] std::vector<MemberStream> streams_of_member(const plan::CollectiveSteps& steps,
                                                          int self);

/// How far a member's messages are, by message.
class MessageProgress {
public:
  explicit MessageProgress(const plan::CollectiveSteps& steps)
      : steps_{steps},
        begun(steps.messages.size()),
        left(steps.messages.size()),
        placed(steps.messages.size()) {}
  void reset();
  /// Are those before it on its lane under way, and what it carries in place?
  [[nodiscard]] bool may_begin(std::uint32_t message) const;
  [[nodiscard]] bool have_left(const PlaceAfter& after) const;
  [[nodiscard]] bool are_placed(const PlaceAfter& after) const;

private:
  const plan::CollectiveSteps& steps_;

public:
  std::vector<char> begun, left, placed;
};

/// Told now and then how long a member has found nothing to do; may end the run.
using WhileWaiting = std::function<void(Duration waited)>;

/// Tells of a member's looks in vain, so many at a time: the clock is read no more often.
class VainLooks {
public:
  explicit VainLooks(const WhileWaiting& waiting) : waiting_{waiting} {}
  void look(bool found) {
    constexpr std::int64_t kAtATime = 256;
    count_ = found ? 0 : count_ + 1;
    if (found || count_ % kAtATime != 0) return;
    if (count_ == kAtATime) since_ = now();
    waiting_(now() - since_);
  }

private:
  const WhileWaiting& waiting_;
  std::int64_t count_ = 0;
  TimePoint since_{};  ///< of looks in vain without one that was not
};

}  // namespace longhaul::harness
