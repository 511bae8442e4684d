#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "planner/advice/scenario_adviser.hpp"

namespace longhaul::planner {

/// Pipelines that take turns on the WAN, at most.
inline constexpr int kMostCell = 8;

/// Scenarios that are advised together: all get every schedule, and of each combination of ideas
/// that they stand for the best few also the searches, overlaps, methods and turns.
class Contest {
public:
  struct Entry {
    const Scenario* scenario = nullptr;
    IdeaSet base;                              ///< ideas that all of its plans use
    std::vector<std::string> first_schedules;  ///< tried first, however little time there is
    std::function<Score(Duration)> score;
    std::optional<Duration> longest;
    bool is_searched = false;  ///< further, however many are better
  };
  /// Of an entry, the same one with cells of pipelines that take turns on the WAN; nothing: it has
  /// none but its own.
  using WithTurns = std::function<std::optional<Entry>(std::size_t number)>;

  /// All that it is given outlives it. `most_entries`: about how many there will be, of which time
  /// for schedules is a share.
  Contest(const AdviceOptions& options, IdeaPool& pool, double most_entries);

  /// Its plans have the number of the entry as AdvisedPlan::scenario: entries count from 0.
  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// Another schedule that an entry tries first; `is_searched`: see Entry.
  void tell_more(std::size_t number, const std::string& schedule, bool is_searched);
  /// Every schedule on the entries that are new.
  void try_schedules();
  void search_further(const WithTurns& with_turns);
  /// Was it asked to end?
  [[nodiscard]] bool must_stop();
  [[nodiscard]] Duration time_left() const;
  /// Why the first entry without a plan has none; empty: it is not known.
  [[nodiscard]] const std::string& why_none() const { return why_none_; }

private:
  [[nodiscard]] ScenarioAdviser adviser_of(std::size_t number);
  void try_turns(std::optional<Entry> entry, Duration time);
  /// How many of the same combination of ideas are better.
  [[nodiscard]] std::size_t rank_of(std::size_t number) const;
  [[nodiscard]] std::pair<Duration, Score> standing_of(std::size_t number) const {
    return pool_.standing_of(static_cast<int>(number));
  }
  /// The best so far, when so many more steps are done.
  void tell(int steps);

  const AdviceOptions& options_;
  IdeaPool& pool_;
  double most_entries_;
  TimePoint begin_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> further_;
  std::size_t schedules_tried_ = 0;
  int steps_ = 0;
  std::string why_none_;
};

}  // namespace longhaul::planner
