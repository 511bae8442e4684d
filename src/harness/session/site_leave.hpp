#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/ranks.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/session/pipeline_input.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::harness {

/// Of --leave: a datacenter whose ranks stop before an iteration.
struct SiteLeave {
  std::string site;
  int iteration = 0;
};
/// "east@3". Throws Error that names the option.
[[nodiscard]] SiteLeave parse_leave(const std::string& text);

/// The rank of `rest` that each rank of `whole` plays; none for those of the site and those that
/// `rest` has no place for. A rank stays in its datacenter; in each they keep their order. Throws
/// Error where there is no such site, `rest` still has ranks there, or more ranks of a datacenter
/// than stay.
[[nodiscard]] std::vector<std::optional<Rank>> ranks_of_rest(const Scenario& whole,
                                                             const Scenario& rest,
                                                             const std::string& site);

/// A run that a datacenter leaves, in two parts.
struct LeavingRun {
  PipelineOptions before, after;
  /// Of the rest's, by the rank that a process plays before; none: it has no part of the rest.
  std::vector<std::optional<Rank>> places;
  SiteLeft left;
};
/// Collective over `world`. Rank 0 reads both scenarios, and makes the schedules that need no
/// search; whatever is wrong becomes one CollectiveError before anything runs.
[[nodiscard]] LeavingRun plan_leave(const comm::Communicator& world, const PipelineOptions& options,
                                    const planner::PlannerOptions& planner);

/// Collective over `all`: `work` on those that take part, while the others sleep. What it ended
/// with on the first of them, for all ranks; a CollectiveError of theirs is one of all ranks.
[[nodiscard]] ExitCode run_on_some(const comm::Communicator& all, bool takes_part,
                                   const std::function<ExitCode()>& work);

/// For people: who left, and how long it took until the rest's first iteration began.
[[nodiscard]] std::string left_text(const SiteLeft& left);

}  // namespace longhaul::harness
