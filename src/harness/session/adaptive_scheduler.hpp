#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/profile/link_profile.hpp"
#include "planner/make_schedule.hpp"

namespace longhaul::harness {

/// Options of adaptation: what a run reacts to, and the schedules it may choose.
struct AdaptOptions {
  bool on = false;
  std::string list;                 ///< schedules to select from, as --schedule names them
  planner::PlannerOptions planner;  ///< of those that are looked for
  double threshold = 0.1;           ///< a deviation beyond which schedules are made anew
  ProfileSource source;
};

/// Something that happened to a run between two iterations.
struct RunEvent {
  int iteration = 0;  ///< the first one that it concerns
  std::string what;   ///< "change", "deviation", "switch", "kept", "failed"
  std::string text;   ///< for people
  nlohmann::ordered_json details;
};

struct Selection {
  Schedule schedule;
  std::string origin;  ///< its name, and what a search started from
  Duration predicted{};
};

/// The schedule of the list with the least simulated makespan among those that are defined on the
/// scenario and fit its budget (CrossPipe 6.2). Throws Error where there is none.
[[nodiscard]] Selection select_schedule(const std::string& list, const Scenario& scenario,
                                        const planner::PlannerOptions& options);

/// Rank 0's part of a run that adapts (CrossPipe 6.1, 6.2, 8.2): believes what the scenario says
/// until an iteration shows something else, then selects a schedule for what it saw, beside the
/// iterations that go on. Calls no MPI.
class AdaptiveScheduler {
public:
  /// `running` was selected for `believed`, which is as played.
  AdaptiveScheduler(Schedule running, Scenario believed, AdaptOptions options);

  /// Looks at an iteration: `times` of all ranks' ops, `truth` what the simulator says of the same
  /// plan (what is played, where links are emulated).
  void observe(int iteration, const Plan& plan, const OpTimes& times, const OpTimes& truth);
  /// The schedule to go on with from `iteration` on, where one is ready that gains at least
  /// kLeastGain on the links as they were seen last.
  [[nodiscard]] std::optional<Schedule> take_switch(int iteration);

  static constexpr double kLeastGain = 0.01;

  /// Links and costs as the last profile shows them.
  [[nodiscard]] const Scenario& seen() const { return seen_; }
  [[nodiscard]] std::vector<RunEvent>& events() { return events_; }

private:
  struct Outcome {
    std::optional<Selection> selection;
    std::string problem;
    Duration took{};
  };
  void regenerate();
  void decide(int iteration, const Selection& selection, Duration took);

  Schedule running_;
  Scenario believed_;
  Scenario seen_;
  AdaptOptions options_;
  std::vector<RunEvent> events_;
  Outcome outcome_;  ///< the worker's until `ready_`
  std::atomic<bool> ready_ = false;
  std::jthread worker_;  ///< last: it must be gone before what it uses
};

}  // namespace longhaul::harness
