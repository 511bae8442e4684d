#pragma once

#include "collective/overlap/overlaps.hpp"
#include "planner/advice/idea_pool.hpp"

namespace longhaul::planner {

enum class Searched { no, yes };
/// Which static schedules overlaps and methods are tried on: the fastest, or every one (with them
/// another one may be the fastest). Of other sets of ideas it is always the fastest.
enum class StaticStarts { fastest, every };

/// The ideas that one scenario with its layout and places leaves open: order, turns, overlap and
/// method.
class ScenarioAdviser {
public:
  /// How its plans are told apart from other scenarios' in the pool, and how they are scored.
  struct Place {
    int scenario = 0;
    IdeaSet base;  ///< ideas that all of its plans use
    std::function<Score(Duration)> score = [](Duration time) { return time.count(); };
    std::optional<Duration> longest{};  ///< plans that take longer are late
  };
  /// All outlive it.
  ScenarioAdviser(const Scenario& scenario, const AdviceOptions& options, IdeaPool& pool,
                  Place place)
      : scenario_{scenario}, options_{options}, pool_{pool}, place_{std::move(place)} {}

  /// One schedule by its name, no search.
  void try_schedule(const std::string& name);
  /// Every static and dynamic schedule; some of them once they have taken `time` and one fits.
  void try_candidates(Duration time);
  /// The search of `best`, within its share of `time`.
  [[nodiscard]] std::optional<Refusal> search_orders(Duration time);
  /// Turns of those, and the search of `atlas+best`.
  void try_turns(Duration time);
  /// Each overlap of those that have all of `with`.
  void try_overlaps(Duration time, const IdeaSet& with = {},
                    StaticStarts starts = StaticStarts::fastest);
  /// Each method of the fastest orders so far, and of one that is searched for them.
  void try_methods(Duration time, Searched also, StaticStarts starts = StaticStarts::fastest);

private:
  struct Start {
    IdeaSet ideas;
    Schedule schedule;
  };
  [[nodiscard]] std::vector<Start> starts_of_overlaps(const IdeaSet& with,
                                                      StaticStarts starts) const;
  /// A schedule as it is, where it fits.
  void add_schedule(Schedule schedule, const IdeaSet& ideas, const Bound& bound = {});
  void add(AdvisedPlan plan);
  /// Exact sums exchanged as `dense` does too: these are no idea.
  void try_methods_of(const Schedule& schedule, const IdeaSet& with);
  /// As `tune` plays them, where replicas have one stage.
  void try_streamed_methods();
  void play_methods(const Schedule& schedule, const IdeaSet& with, const BesideMethods& beside,
                    Played how);
  [[nodiscard]] std::optional<std::string> why_no_methods() const;
  /// The first reason counts.
  void refuse_method(const std::string& reason);
  /// Of the plans with these very ideas: overlaps are of ranks of a stage that do the same.
  [[nodiscard]] std::optional<Schedule> fastest_with_equal_replicas(const IdeaSet& of) const;
  void add_overlapped(const collective::Overlap& overlap, const Schedule& schedule,
                      const IdeaSet& with, Duration most);
  [[nodiscard]] bool must_stop();
  [[nodiscard]] SearchOptions options_of_search(Duration time, double share) const;

  const Scenario& scenario_;
  const AdviceOptions& options_;
  IdeaPool& pool_;
  Place place_;
  bool refused_method_ = false;
};

}  // namespace longhaul::planner
