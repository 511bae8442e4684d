#pragma once

#include <cstddef>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::plan {

/// What ops of a stream take, iteration by iteration: as in the plan, and as its settings say from
/// their iterations on.
class StreamValues {
public:
  /// The plan must live as long.
  explicit StreamValues(const Plan& plan) : plan_{plan} {}

  /// Of an iteration that is not before the last one's.
  void append(const StreamSetting& setting);
  void clear() { changes_.clear(); }
  /// No iteration before this one is asked for any more: what held for those alone goes.
  void forget_before(int iteration);
  /// Settings that are in memory.
  [[nodiscard]] std::size_t held() const { return changes_.size(); }
  [[nodiscard]] bool unchanged() const { return changes_.empty(); }
  /// The first iteration of the last setting; 0: there is none.
  [[nodiscard]] int last() const { return changes_.empty() ? 0 : changes_.back().from; }

  [[nodiscard]] Duration duration(OpId op, int iteration) const {
    if (changes_.empty()) [[likely]]
      return plan_.op(op).duration;
    const Change* const change = change_of(iteration);
    return change == nullptr ? plan_.op(op).duration : change->durations[index(op)];
  }
  /// Of a send.
  [[nodiscard]] Bytes size(OpId op, int iteration) const {
    if (changes_.empty()) [[likely]]
      return plan_.op(op).size;
    const Change* const change = change_of(iteration);
    return change == nullptr ? plan_.op(op).size : change->sizes[index(op)];
  }

private:
  struct Change {
    int from = 0;
    std::vector<Duration> durations;  ///< by op
    std::vector<Bytes> sizes;         ///< likewise
  };
  [[nodiscard]] const Change* change_of(int iteration) const;

  const Plan& plan_;
  std::vector<Change> changes_;
};

/// What makes the ops of one plan those of another, which differs in times and sizes alone: from
/// `from_iteration` on. Throws Error where they differ otherwise.
[[nodiscard]] StreamSetting setting_between(const Plan& before, const Plan& after,
                                            int from_iteration);

}  // namespace longhaul::plan
