#include <array>

#include "schedule/generators/families.hpp"
#include "schedule/generators/greedy/greedy.hpp"

namespace longhaul::schedule::families {
namespace {

using enum BlockKind;

/// Which of them serves best depends on the delays: none is best everywhere.
constexpr std::array kRules{
    GreedyRules{},
    GreedyRules{.after_forward = {D, F, W}, .after_backward = {D, F, W}, .patience = 0},
    GreedyRules{.after_forward = {F, D, W}, .after_backward = {F, D, W}, .patience = 0},
    GreedyRules{.after_forward = {D, F, W}, .after_backward = {F, D, W}, .patience = 0.5},
};

/// Both copies are one chunk there, and their order is no matter of links: one activation at a
/// time.
std::optional<Refusal> fill_one_device(const Scenario& scenario, Schedule& schedule) {
  Schedule single = schedule;
  single.copies = single.chunks = 1;
  single.device_of_chunk = {DeviceId{0}};
  const Result<GreedyProblem> problem = greedy_problem(scenario, single, 1);
  if (!problem) return problem.refusal();
  run_greedy(*problem, GreedyRules{}, &single.rows);
  schedule.rows = std::move(single.rows);
  for (Block& block : schedule.rows.front())
    block.chunk = ChunkId{block.microbatch % schedule.copies};
  return std::nullopt;
}

}  // namespace

/// Both copies pass the same greedy, which knows them as chunks that no message joins; on a device
/// the one that is later in its pipeline goes first in F, the other one in D. It leaves
/// the sum of the copies' gradients out of account: every device ends with it.
std::optional<Refusal> fill_cross_bd(const Scenario& scenario, Schedule& schedule) {
  if (schedule.devices == 1) return fill_one_device(scenario, schedule);
  const Result<GreedyProblem> problem = greedy_problem(scenario, schedule, 1);
  if (!problem) return problem.refusal();
  run_best(*problem, kRules, schedule.rows);
  return std::nullopt;
}

}  // namespace longhaul::schedule::families
