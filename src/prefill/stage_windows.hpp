#pragma once

#include <cstdint>
#include <vector>

#include "prefill/placement.hpp"

namespace longhaul::prefill {

/// A time of a GPU that prefills may take.
struct FillWindow {
  std::int32_t rank = 0;
  Duration start{}, end{};
};

/// The times of an iteration in which each GPU that serves may compute prefills of a file, whatever
/// places them; start in [0, period). Of a pipeline of one stage its bubbles less the guard. Of k
/// stages less than that: a prompt that a GPU computes a part of at time t is at the other stages
/// (their distance) x (stage time + hop) before and after it, and these times lie in bubbles of
/// those GPUs, too, for some stage time between the shortest and the longest of the file.
[[nodiscard]] std::vector<FillWindow> fill_windows(const IterationBubbles& iteration,
                                                   const std::vector<Served>& served,
                                                   const std::vector<Request>& file);

/// The most GPU time of the prompts of an open loop that anyone fills into the windows of so many
/// iterations, knowing all arrivals ahead: each prompt may be cut into any parts, which any GPUs
/// compute at any time between its arrival and its deadline (slo_ttft, or the stretch's end). The
/// prompt of the earliest deadline first is the best of all such fillings.
[[nodiscard]] Duration most_flow(const IterationBubbles& iteration,
                                 const std::vector<FillWindow>& windows,
                                 const std::vector<Served>& served,
                                 const std::vector<Request>& offered, std::int64_t iterations);

}  // namespace longhaul::prefill
