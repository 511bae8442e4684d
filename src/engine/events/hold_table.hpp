#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "engine/links/shared_mutex.hpp"
#include "plan/plan.hpp"

namespace longhaul::engine {

/// Where an op stands among those that may start: less is earlier.
struct ChoiceKey {
  std::int64_t first = 0, second = 0;
  std::uint32_t op = 0;
  friend auto operator<=>(const ChoiceKey&, const ChoiceKey&) = default;
};

/// Who holds the resources of a plan in order of time, in one block of memory: the rank's own for
/// what it alone uses, the host's for what several of its ranks share. What serves in order of
/// readiness is held until a known time; what chooses is held until it is let go, and those that
/// wait for it say what they would start first.
class HoldTable {
public:
  [[nodiscard]] static std::size_t bytes(const Plan& plan, std::size_t ranks);
  /// `memory` is zeroed and lasts as long as the table; `make` true for one of those who share it,
  /// before the others use it. `self`: the place of this rank among the `ranks` that do.
  HoldTable(const Plan& plan, std::byte* memory, bool make, std::size_t ranks, std::size_t self);
  /// Before an iteration or a stream, by all who share it, before any of them uses it.
  void clear();

  struct Free {
    TimePoint at{};
    OpId holder = kNone<OpId>;
  };
  /// Serves an op that may start at `from` by itself: `hold_until` is told when all that it needs
  /// is free, and says until when it holds that; nothing: it does not run.
  std::optional<Free> serve(OpId op, TimePoint from,
                            const std::function<std::optional<TimePoint>(TimePoint)>& hold_until);

  /// Who held all that `op` needs let go of it then: no one holds it any more or is to.
  void free_from(OpId op, TimePoint due);

  /// Of what chooses: is all free that the op needs?
  [[nodiscard]] bool is_free(OpId op) const;
  /// Takes it, if it is free and no other rank that could start one now has an earlier one.
  bool take_first(OpId op, const ChoiceKey& key);
  void take(OpId op);
  void let_go(OpId op, TimePoint due);
  /// What this rank would start first of what holds `resource`; nothing: none.
  void want(ResourceId resource, const std::optional<ChoiceKey>& key);
  /// Who let go of what the op needs last, and when.
  [[nodiscard]] Free last_release(OpId op) const;

private:
  struct Head;
  struct Holds;
  struct Slot;
  struct Wanted;
  struct Layout {
    std::size_t holds, slots, wanted, end;
  };
  static Layout layout(const Plan& plan, std::size_t ranks);
  [[nodiscard]] Slot& earliest(ResourceId resource) const;
  [[nodiscard]] bool all_free(OpId op) const;

  const Plan& plan_;
  std::size_t ranks_, self_;
  Head* head_;
  Holds* holds_;
  Slot* slots_;
  Wanted* wanted_;                       ///< by resource, then rank
  std::vector<std::size_t> first_slot_;  ///< by resource; one more at the end
};

}  // namespace longhaul::engine
