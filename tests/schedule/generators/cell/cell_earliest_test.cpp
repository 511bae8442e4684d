#include "schedule/generators/cell/cell_earliest.hpp"

#include <gtest/gtest.h>

namespace longhaul::schedule::families {
namespace {

using namespace std::chrono_literals;

/// Three stages, two microbatches: F 1, B 2, no R; 3 on a link and 4 of latency, 5 and 6 back.
struct Three {
  CellProblem problem;
  std::vector<LeastHop> hops{2, LeastHop{3ns, 4ns, 5ns, 6ns}};

  Three() {
    problem.microbatches = 2;
    CellStage stage;
    stage.forward = 1ns;
    stage.backward = 2ns;
    problem.stages.assign(3, stage);
    problem.activations.resize(3);
    problem.gradients.resize(3);
  }
};

// The first F ends at 1, the next stage has it at 8 and runs its own, the last has that at 16 and
// works 6 on both microbatches; from its last B to that of the first stage are two ways of 11 and
// two Bs.
TEST(EarliestTimes, KnowTheWholeWayAfterTheFirstBlock) {
  const Three three;
  EarliestTimes times{three.problem, three.hops};
  times.add(0, BlockKind::F, MicrobatchId{0});
  EXPECT_EQ(times.bound(), Duration{1 + 7 + 1 + 7 + 6 + 26});
}

// On each stage F0 F1 B0 B1, but for the last, which has F0 B0 F1 B1: nothing waits there, so that
// the end is the one that the first block told.
TEST(EarliestTimes, EndWhereTheFirstBlockSaidWithNothingInTheWay) {
  const Three three;
  EarliestTimes times{three.problem, three.hops};
  using enum BlockKind;
  for (const std::size_t node : {0U, 1U})
    for (const int microbatch : {0, 1}) times.add(node, F, MicrobatchId{microbatch});
  for (const int microbatch : {0, 1})
    for (const BlockKind kind : {F, B}) times.add(2, kind, MicrobatchId{microbatch});
  for (const std::size_t node : {1U, 0U})
    for (const int microbatch : {0, 1}) times.add(node, B, MicrobatchId{microbatch});
  EXPECT_EQ(times.bound(), Duration{48});
}

}  // namespace
}  // namespace longhaul::schedule::families
