#pragma once

#include <array>
#include <span>
#include <utility>

#include "planner/advice/advice.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::planner {

/// Why there is no method where none is allowed.
inline constexpr const char* kWhyExact =
    "gradients are summed exactly in each iteration (--allow stale or lossy)";

/// That a schedule uses which the generator made (nullptr: a search). A cell of one takes no turns.
[[nodiscard]] IdeaSet ideas_of(const schedule::Generator* from, const Schedule& made);

/// Plans of one or several scenarios by the ideas that they use, and what follows from them.
class IdeaPool {
public:
  void add(AdvisedPlan plan);
  /// Another plan was looked at.
  void note_evaluated() { ++evaluated_; }
  void stop() { is_stopped_ = true; }
  [[nodiscard]] bool is_stopped() const { return is_stopped_; }

  /// The first of the best that use no other ideas; nullptr: there is none.
  [[nodiscard]] const AdvisedPlan* best_within(const IdeaSet& ideas) const;
  [[nodiscard]] const AdvisedPlan* best() const { return best_within(IdeaSet{}.set()); }
  /// Is there a plan of the scenario with a method, or with sums as one exchanges them?
  [[nodiscard]] bool has_method(int scenario) const;
  /// Of the scenario's best plan, to compare: its score, the later ones by how late they are.
  [[nodiscard]] std::pair<Duration, Score> standing_of(int scenario) const;
  /// Of the scenario's plans with these very ideas, late ones too; the fastest first.
  [[nodiscard]] std::vector<Schedule> fastest_of(int scenario, const IdeaSet& ideas,
                                                 std::size_t most) const;
  /// The plans of a scenario without a bound have this one from now on: those that sum gradients.
  void set_bound(int scenario, const Bound& bound);
  /// Those that exchange them by a method: a bound of blocks alone.
  void set_bound_of_methods(int scenario, const Bound& bound);

  /// Why no plan uses an idea, should none: the last word counts.
  void refuse(Idea idea, std::string reason) {
    reasons_[static_cast<std::size_t>(idea)] = std::move(reason);
  }

  /// Why no plan uses both, by construction.
  void exclude(Idea one, Idea other, std::string reason) {
    exclusions_.push_back({one, other, std::move(reason)});
  }

  [[nodiscard]] Advice advice() const;
  [[nodiscard]] const std::vector<AdvisedPlan>& plans() const { return plans_; }
  [[nodiscard]] std::vector<AdvisedPlan> plans_in_time() const;

private:
  [[nodiscard]] Score score_with(const IdeaSet& ideas) const;
  [[nodiscard]] std::vector<IdeaValue> waterfall() const;
  [[nodiscard]] std::string reason_of(Idea idea) const;

  struct Exclusion {
    Idea one{}, other{};
    std::string reason;
  };

  std::vector<AdvisedPlan> plans_;
  std::vector<Exclusion> exclusions_;
  std::array<std::string, kCountOf<Idea>> reasons_;
  std::size_t evaluated_ = 0;
  bool is_stopped_ = false;
};

}  // namespace longhaul::planner
