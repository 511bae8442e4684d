#include "harness/training/train_mass.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace longhaul::harness {
namespace {

using Numbers = std::vector<double>;
using Steps = std::vector<std::int8_t>;

/// Gradients [3, 0] and [1, 4], of which [0, 1] waits with the first.
TrainMass two_replicas() {
  TrainMass mass;
  mass.add(Numbers{3, 0}, Numbers{0, 1});
  mass.add(Numbers{1, 4}, Numbers{0, 0});
  return mass;
}

TEST(TrainMass, CountsWhatWaitsAndWhatWasSteppedWith) {
  TrainMass mass = two_replicas();
  mass.compare(Numbers{4, 3}, Steps{1, 1});
  EXPECT_EQ(mass.lost_relative(), 0);
}

/// One replica that got all hides no other that did not; the norm of the gradients is sqrt(32).
TEST(TrainMass, IsOfTheReplicaThatLacksMost) {
  for (const bool first : {true, false}) {
    TrainMass mass = two_replicas();
    mass.compare(first ? Numbers{0, 3} : Numbers{4, 3}, Steps{1, 1});
    mass.compare(first ? Numbers{4, 3} : Numbers{0, 3}, Steps{1, 1});
    EXPECT_DOUBLE_EQ(mass.lost_relative(), 4 / std::sqrt(32.0));
  }
}

/// Sums of zeros lose all; a replica for which another steps has none.
TEST(TrainMass, TellsNothingFromNoSums) {
  TrainMass mass = two_replicas();
  mass.compare(Numbers{0, 0}, Steps{0, 0});
  EXPECT_EQ(mass.lost_relative(), 0);
  mass.compare(Numbers{0, 0}, Steps{1, 0});
  EXPECT_DOUBLE_EQ(mass.lost_relative(), 4 / std::sqrt(32.0));
  mass.compare(Numbers{0, 0}, Steps{1, 1});
  EXPECT_DOUBLE_EQ(mass.lost_relative(), 5 / std::sqrt(32.0));
}

TEST(TrainMass, SeesAStepWithoutAGradient) {
  TrainMass mass;
  mass.add(Numbers{0}, Numbers{0});
  mass.compare(Numbers{0}, Steps{1});
  EXPECT_EQ(mass.lost_relative(), 0);
  mass.compare(Numbers{2}, Steps{1});
  EXPECT_EQ(mass.lost_relative(), 1);
}

TEST(TrainMass, IsNoNumberOnceOneIsNone) {
  TrainMass mass = two_replicas();
  mass.compare(Numbers{std::nan(""), 3}, Steps{1, 1});
  mass.compare(Numbers{4, 3}, Steps{1, 1});
  EXPECT_TRUE(std::isnan(mass.lost_relative()));
}

}  // namespace
}  // namespace longhaul::harness
