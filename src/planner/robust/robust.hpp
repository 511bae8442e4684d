#pragma once

#include <string>
#include <vector>

#include "planner/search/best.hpp"

namespace longhaul::planner {

/// How candidates are held against links that vary (`[[link]] jitter`).
struct RobustOptions {
  SearchOptions search;    ///< of each search: one as profiled, one for each conservative factor
  int samples = 256;       ///< iterations that every candidate plays, the same ones
  double quantile = 0.95;  ///< what the choice goes by
  std::vector<double> conservative{1.1, 1.25, 1.5};  ///< see conservative()
};

/// Makespans of one schedule over the sampled iterations.
struct UnderJitter {
  Duration nominal{};  ///< without jitter
  Duration mean{};
  Duration median{};
  Duration tail{};  ///< the quantile, nearest rank
};

/// A schedule that was held against the samples.
struct RobustCandidate {
  Schedule schedule;
  std::string origin;  ///< "1f1b", "best", "best for links 1.25 times as slow"
  UnderJitter times;
};

struct RobustChoice {
  Schedule schedule;                        ///< named "best": the first candidate's
  SearchResult as_profiled;                 ///< what find_best() says without jitter
  std::vector<RobustCandidate> candidates;  ///< by tail, then mean, then as they were made
};

/// The makespan in each of `samples` iterations that jitter makes of the scenario
/// (plan/link_model/jitter.hpp, by run.seed): every schedule meets the same ones. The schedule must
/// be valid.
[[nodiscard]] std::vector<Duration> makespans_under_jitter(const Schedule& schedule,
                                                           const Scenario& scenario,
                                                           Arrangement arrangement, int samples);

/// The value at the nearest rank: the smallest that at least `quantile` of them do not exceed.
[[nodiscard]] Duration quantile_of(std::vector<Duration> times, double quantile);

[[nodiscard]] UnderJitter under_jitter(const Schedule& schedule, const Scenario& scenario,
                                       const RobustOptions& options);

/// CrossPipe's remedy (8.2): every latency times `factor`, every rate over it.
[[nodiscard]] Scenario conservative(Scenario scenario, double factor);

/// Throws Error where no link has any jitter: then there is nothing to be robust against.
void require_jitter(const Scenario& scenario);

/// The schedule with the least tail under jitter among all that fit, the result of find_best(), and
/// its results for links that are slower by each of the conservative factors.
/// Refused as try_find_best() is. Throws Error as require_jitter() does.
Result<RobustChoice> pick_robust(const Scenario& scenario, const RobustOptions& options);

}  // namespace longhaul::planner
