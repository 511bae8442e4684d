#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// Shares of GPU time that training and prefill together do not exceed, whatever places requests
/// (docs/prefill.md). Each is computed from bubbles and requests alone.
struct UtilisationBounds {
  double bubbles = 1;  ///< what each GPU that serves may fill: fill_windows()
  /// The largest sum of stage times that each bubble holds; not of chunks and shared passes.
  std::optional<double> whole_prompts{};
  /// Of a backlog: prompts come in the file's order, so that too long ones find too few bubbles.
  std::optional<double> mix{};
  /// Of an open loop: the most of its prompts' work that lies between arrivals and deadlines.
  std::optional<double> flow{};

  [[nodiscard]] double upper() const;
  /// The name of the least, of equal ones the first: "bubbles", "whole_prompts", "mix", "flow".
  [[nodiscard]] const char* reason() const;
};

/// `file`: every request that may come, of an open loop by arrival. `backlog_waiting`: how many of
/// a queue that never empties wait; nullopt: an open loop, which has no `mix`.
[[nodiscard]] UtilisationBounds utilisation_bounds(const IterationBubbles& iteration,
                                                   const std::vector<Served>& served,
                                                   const std::vector<Request>& file,
                                                   std::optional<std::int64_t> backlog_waiting,
                                                   std::int64_t iterations);

}  // namespace longhaul::prefill
