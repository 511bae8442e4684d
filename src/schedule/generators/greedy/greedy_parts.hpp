#pragma once

#include <vector>

#include "schedule/generators/greedy/greedy_run.hpp"

namespace longhaul::families {

/// Puts parts of one W together where no F or D of the row begins later for it and the row does not
/// end later, and turns what is left apart into parts of a block (Block::part, Block::parts). `row`
/// is what the run wrote.
void merge_parts(const GreedyProblem& problem, const GreedyRun& run, std::vector<Block>& row);

}  // namespace longhaul::families
