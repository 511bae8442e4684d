#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/listed_enum.hpp"
#include "base/result.hpp"
#include "planner/advice/methods.hpp"
#include "planner/bounds/bounds.hpp"
#include "planner/search/best.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// What a plan may use beside the static schedules: a layout (t, d, p), micro-batch, recomputation
/// and sharding that no rule of thumb gives (vTrain), some datacenters instead of all (Atlas),
/// orders of blocks that know of delays (CrossPipe), turns of a DP-cell's pipelines on the WAN
/// (Atlas), communication partitioned and hidden beside operators (Centauri), prompts computed in
/// what stays idle (BubbleTea), gradients exchanged compressed, late or seldom (StellaTrain).
#define LONGHAUL_IDEAS(X) \
  X(layout, "layout")     \
  X(sites, "sites")       \
  X(order, "order")       \
  X(turns, "turns")       \
  X(overlap, "overlap")   \
  X(prefill, "prefill")   \
  X(method, "method")
LONGHAUL_LISTED_ENUM(Idea, LONGHAUL_IDEAS);

using IdeaSet = std::bitset<kCountOf<Idea>>;
[[nodiscard]] inline IdeaSet only(Idea idea) {
  return IdeaSet{}.set(static_cast<std::size_t>(idea));
}
[[nodiscard]] inline bool has(const IdeaSet& ideas, Idea idea) {
  return ideas.test(static_cast<std::size_t>(idea));
}
[[nodiscard]] inline bool is_within(const IdeaSet& inner, const IdeaSet& outer) {
  return (inner & ~outer).none();
}

/// What plans are compared by: ns of an iteration, or 10^-9 dollars of one; where methods are
/// allowed, of all updates until their loss.
using Score = std::int64_t;

/// One way to run the iteration: `simulate --schedule`, and `--overlap` where one is named.
struct AdvisedPlan {
  Schedule schedule;                       ///< within budget and capacity
  std::string overlap;                     ///< empty: none
  Duration makespan{};                     ///< of an update until the loss, with a method
  IdeaSet ideas;                           ///< that it uses
  Bound bound{};                           ///< of its class; 0: none was computed
  int scenario = 0;                        ///< of several that were advised together: index
  Score score = 0;                         ///< less is better
  std::optional<double> prefill_tokens{};  ///< that an iteration computes, with Idea::prefill
  std::optional<std::size_t> method{};     ///< of AdviceOptions::methods: index into `others`
  Bytes message{};                         ///< of a set of a part, with a method
  Duration alone{};                        ///< of an iteration without gradients, with a method
  FamilyForecast forecast{};               ///< of its exchanges, with a method
  Duration late_by{};                      ///< beyond the longest: no answer, but a start
  Bytes peak{};                            ///< the most that a rank holds, with an overlap
  /// Iterations that the search of its overlap simulated: as far again, and it is the same one.
  std::optional<std::size_t> overlap_evaluations{};

  [[nodiscard]] bool is_late() const { return late_by > Duration::zero(); }
};

/// What an idea gains; below 0 never.
struct IdeaValue {
  Idea idea{};
  Score alone = 0;    ///< over the static schedules, by itself
  Score added = 0;    ///< over those before it in the list: these add up to the whole gain
  Score removed = 0;  ///< that the best plan loses without it
};

/// An idea without which the best plan is as good.
struct UnusedIdea {
  Idea idea{};
  std::string reason;
};

struct Advice {
  /// The best of each set of ideas that no smaller set reaches; the best first.
  std::vector<AdvisedPlan> plans;
  std::optional<Score> baseline;     ///< of the best plan without ideas; nothing: none fits
  std::vector<IdeaValue> waterfall;  ///< each next one gains most; empty without a baseline
  std::vector<UnusedIdea> unused;
  std::vector<AdvisedPlan> all;  ///< short enough ones, with AdviceOptions::keeps_all
  std::size_t evaluated = 0;     ///< plans that were simulated by name
  bool is_stopped = false;       ///< before all was tried

  [[nodiscard]] const AdvisedPlan& best() const { return plans.front(); }
};

struct AdviceOptions {
  Duration time = std::chrono::seconds{60};  ///< wall-clock time of the searches together, about
  std::optional<std::int64_t> moves;         ///< instead of it, of each search: repeatable
  int threads = 0;                           ///< 0: all cores
  /// Asked between plans and while cells, orders and turns are searched, from many threads: true
  /// ends the search.
  std::function<bool()> stopped;
  std::optional<Duration> longest{};         ///< plans that take longer are none, but starts
  bool keeps_all = false;                    ///< also what is no better than others
  std::optional<TrainingMethods> methods{};  ///< nothing: iterations have exact sums
  /// Told of the best so far when `done` of `all` steps are done.
  std::function<void(int done, int all, const AdvisedPlan& best)> after_step;

  /// Has what began at `begin` had more than `most`? Never where moves bound it.
  [[nodiscard]] bool is_over(TimePoint begin, Duration most) const {
    return !moves && now() - begin > most;
  }
};

/// The joint search over the ideas for a placed scenario, decoupled. Never slower than what
/// `simulate` says of any static, dynamic or shared schedule that it tried, of `best`,
/// `atlas+best`, or of any static one or the fastest of the others under any overlap; nor slower to
/// its loss than any static one by any method. Refused as try_find_best() is, and
/// where no plan is short enough.
[[nodiscard]] Result<Advice> advise(const Scenario& scenario, const AdviceOptions& options = {});

}  // namespace longhaul::planner
