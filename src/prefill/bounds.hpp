#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// Shares of GPU time that training and prefill together do not exceed, whatever places requests
/// (docs/prefill.md). Each is computed from bubbles and requests alone.
struct UtilisationBounds {
  double bubbles = 1;        ///< every bubble of a GPU that serves, less the guard
  double whole_prompts = 1;  ///< the largest sum of stage times that each bubble holds
  /// Of a backlog: prompts come in the file's order, so that too long ones find too few bubbles.
  std::optional<double> mix{};

  [[nodiscard]] double upper() const;
  /// The name of the least: "bubbles", "whole_prompts", "mix".
  [[nodiscard]] const char* reason() const;
};

/// `file`: every request that may come. `backlog_waiting`: how many of a queue that never empties
/// wait; nullopt: an open loop, which has no `mix`.
[[nodiscard]] UtilisationBounds utilisation_bounds(const IterationBubbles& iteration,
                                                   const std::vector<Served>& served,
                                                   const std::vector<Request>& file,
                                                   std::optional<std::int64_t> backlog_waiting,
                                                   std::int64_t iterations);

}  // namespace longhaul::prefill
