#include <algorithm>

#include "base/index.hpp"
#include "schedule/generators/greedy/greedy_run.hpp"

namespace longhaul::schedule::families {
namespace {

/// How many blocks may be placed to find out which rules serve best: some milliseconds.
constexpr std::int64_t kTrialBlocks = std::int64_t{1} << 18;

std::int64_t blocks_of(const GreedyProblem& problem) {
  std::int64_t blocks = 0;
  for (const GreedyChunk& chunk : problem.chunks)
    blocks += chunk.count * (2 + static_cast<std::int64_t>(chunk.wgrad.size()));
  return std::max<std::int64_t>(blocks, 1);
}

}  // namespace

Duration run_greedy(const GreedyProblem& problem, const GreedyRules& rules,
                    std::vector<std::vector<Block>>* rows) {
  GreedyRun run{problem, rules, rows};
  const Duration end = run.run();
  const bool parts = problem.chunks.front().wgrad.size() > 1;
  if (rows == nullptr || !parts) return end;
  for (std::vector<Block>& row : *rows) merge_parts(problem, run, row);
  return end;
}

Duration run_best(std::span<const GreedyTrial> trials, std::vector<std::vector<Block>>& rows) {
  std::int64_t placed = 0;
  const auto too_long = [&placed](const GreedyTrial& trial) {
    return (placed += blocks_of(*trial.problem)) > kTrialBlocks;
  };
  const auto tried = trials.first(at(std::ranges::find_if(trials, too_long) - trials.begin()));
  const GreedyTrial* best = &trials.front();
  if (tried.size() < 2) return run_greedy(*best->problem, *best->rules, &rows);
  Duration least = Duration::max();
  for (const GreedyTrial& trial : tried) {
    const Duration end = run_greedy(*trial.problem, *trial.rules, nullptr);
    if (end >= least) continue;
    best = &trial;
    least = end;
  }
  return run_greedy(*best->problem, *best->rules, &rows);
}

Duration run_best(const GreedyProblem& problem, std::span<const GreedyRules> rules,
                  std::vector<std::vector<Block>>& rows) {
  std::vector<GreedyTrial> trials;
  for (const GreedyRules& each : rules) trials.push_back({&problem, &each});
  return run_best(trials, rows);
}

}  // namespace longhaul::schedule::families
