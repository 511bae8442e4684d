#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::sim {

/// The sources of a plan's lanes, and what each of them may know.
class SourceDesk {
public:
  enum class State : std::uint8_t { busy, due, until, for_end, over };
  /// A source and its lane: `busy` while the op that it drew is not over.
  struct Entry {
    std::uint32_t lane = 0;
    std::unique_ptr<plan::OpSource> source;
    State state = State::due;
    Duration until{};
    std::size_t seen = 0;       ///< of all ends
    std::uint32_t drawn = 0;    ///< instance, where busy
    std::vector<bool> taken{};  ///< by position on the lane: drawn in this iteration
  };
  explicit SourceDesk(const Plan& plan);

  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }
  [[nodiscard]] Entry* of_lane(std::uint32_t lane);
  void add(const plan::OpEnd& end) { ends_.push_back(end); }
  /// Is it to be asked at this instant?
  [[nodiscard]] bool is_due(const Entry& entry, Duration now) const;
  /// Asks it, with all that has ended since it was asked last.
  [[nodiscard]] plan::Decision ask(Entry& entry, Duration now, int iteration);

private:
  void forget_what_all_know();

  std::vector<Entry> entries_;
  std::vector<plan::OpEnd> ends_;  ///< those that some source has not heard of
  std::size_t forgotten_ = 0;      ///< ends before these
};

}  // namespace longhaul::sim
