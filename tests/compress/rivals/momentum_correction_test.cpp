#include "compress/rivals/momentum_correction.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

TEST(Dgc, ThatKeepsAllIsMomentumSgd) {
  Dgc dgc{{.keep = 1, .momentum = 0.9F}, 10};
  std::vector<float> weights(10), dense(10), momentum(10);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const std::vector<float> gradient = gradient_of(10, step);
    add_to(weights, dgc.take(gradient), -0.5F);
    for (std::size_t i = 0; i < 10; ++i) {
      momentum[i] = 0.9F * momentum[i] + gradient[i];
      dense[i] += -0.5F * momentum[i];
    }
  }
  EXPECT_EQ(weights, dense);
}

TEST(Dgc, GathersMomentumWhileItWaitsAndMasksWhatItSent) {
  Dgc dgc{{.keep = 0.5, .momentum = 0.5F}, 2};
  const std::vector<float> gradient{4, 1};
  EXPECT_THAT(dgc.take(gradient).values, ::testing::ElementsAre(4));
  EXPECT_THAT(dgc.momenta(), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(dgc.take(gradient).values, ::testing::ElementsAre(4));
  // 1, then 1.5 and 1 + 1.5 of it waiting
  EXPECT_THAT(dgc.momenta(), ::testing::ElementsAre(0, 1.5));
  EXPECT_THAT(dgc.waiting(), ::testing::ElementsAre(0, 2.5));
}

TEST(Dgc, KeepsLessStepByStep) {
  Dgc dgc{{.keep = 0.01, .momentum = 0, .ramp_steps = 2}, 10};
  std::vector<double> kept;
  for (int step = 0; step < 10; ++step) {
    kept.push_back(dgc.keep());
    static_cast<void>(dgc.take(std::vector<float>(10, 1)));
  }
  EXPECT_THAT(kept, ::testing::ElementsAre(0.25, 0.25, 0.0625, 0.0625, 0.015625, 0.015625, 0.01,
                                           0.01, 0.01, 0.01));
  EXPECT_THROW((Dgc{{.keep = 0}, 10}), Error);
}

}  // namespace
}  // namespace longhaul::compress::test
