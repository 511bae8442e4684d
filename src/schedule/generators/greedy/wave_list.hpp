#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "scenario/scenario.hpp"
#include "schedule/generators/greedy/greedy.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule::families {

/// The gaps shorter than a W into which a device puts one, where the bubble would make it the
/// device that idles most: before a D of its later chunk, and before an F. Before a D of its first
/// chunk it always does.
struct WaveFill {
  bool before_dgrad = true;
  bool before_forward = true;
};

/// An order on a V of two chunks a device, and its times.
struct WaveOrder {
  std::vector<std::vector<Block>> rows;  ///< index: device
  std::vector<Duration> bubbles;         ///< index: device; idle between its first F and last block
};

/// One pass of the zero-bubble authors' list scheduling for a V (Qi et al., "Zero Bubble Pipeline
/// Parallelism", ICLR 2024, section 3.1; their B is our D), from the costs of blocks, the memory
/// limit and the delays of messages, each alone on its link (none: without_delays()). In three
/// phases, all devices together:
///
/// 1. Warm-up: the first microbatch runs down and up the V; a device that waits for it runs Fs of
///    its first chunk meanwhile, as far as memory for the next phase is left. Then devices run Fs
///    of both chunks in turn, each until it has as many as the one before it.
/// 2. Steady: rounds of one D and one F a device. W goes into gaps that are as long as it, where
///    memory is needed, and as WaveFill says.
/// 3. The W that are left.
///
/// `lag`: index: device; how much less each device idled in an earlier pass than the one that
/// idled most, which it may do again (zeros in a first pass). nullopt: the order does not fit.
[[nodiscard]] std::optional<WaveOrder> wave_list(const GreedyProblem& problem, const WaveFill& fill,
                                                 std::span<const Duration> lag);

/// How a V is planned, and by which times the best order is chosen.
struct WaveJudgement {
  const GreedyProblem& planned;  ///< as passes see it
  const GreedyProblem& judged;   ///< as time_of_rows() sees the result
};

/// The best rows for a schedule that is complete but for them: zbv, where it fits the budget, and
/// passes with every WaveFill, each repeated from its own bubbles while the largest shrinks.
/// Between equals zbv, then the first. Large problems try fewer (counted in blocks, so that the
/// result depends on the scenario alone). Precondition: both problems are greedy_problem() of the
/// scenario and the schedule, but for delays.
[[nodiscard]] std::vector<std::vector<Block>> best_wave_rows(const Scenario& scenario,
                                                             const Schedule& schedule,
                                                             const WaveJudgement& by);

}  // namespace longhaul::schedule::families
