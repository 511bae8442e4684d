#include "profile/matmul_law.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "profile/machine.hpp"

namespace longhaul::profile {
namespace {

const MatmulLaw::Constants kConstants{5000, 100, 64, 0, 0};

TEST(MatmulLaw, WithoutNeighboursIsTheFormula) {
  const MatmulLaw law{kConstants, {}};
  EXPECT_DOUBLE_EQ(law.time({128, 100, 10}).ns, 2 * 128 * 100 * 10 / 100.0 * 1.5);
}

TEST(MatmulLaw, TakesMeasuredTimesAndFadesFarFromThem) {
  const MatmulShape shape{1024, 1024, 1024};
  const MatmulLaw plain{kConstants, {}};
  const double slow = 2 * plain.law_ns(shape) + kConstants.launch_ns;
  const MatmulLaw law{kConstants,
                      {{shape, slow}, {{64, 64, 64}, plain.law_ns({64, 64, 64}) + 5000}}};
  const MatmulTime same = law.time(shape);
  EXPECT_EQ(same.basis, TimeBasis::measured);
  EXPECT_NEAR(same.ns, 2 * plain.law_ns(shape), 0.01 * same.ns);
  const MatmulTime near = law.time({1024, 1024, 900});
  EXPECT_EQ(near.basis, TimeBasis::interpolated);
  EXPECT_GT(near.ns, 1.8 * plain.law_ns({1024, 1024, 900}));
  const MatmulTime far = law.time({64, 1024, 64});
  EXPECT_NEAR(far.ns, plain.law_ns({64, 1024, 64}), 0.05 * far.ns);
  const MatmulTime beyond = law.time({4096, 1024, 1024});
  EXPECT_EQ(beyond.basis, TimeBasis::extrapolated);
  EXPECT_DOUBLE_EQ(beyond.beyond, 4);
}

TEST(MatmulLaw, LeftOutShapesOfTheProgramsGpusFollowFromTheOthers) {
  EXPECT_LT(machine_named("selene").gpu.matmul.leave_one_out_error(), 0.10);
  EXPECT_LT(machine_named("mpt-h100-80gb").gpu.matmul.leave_one_out_error(), 0.12);
}

TEST(MatmulLaw, RefusesATableThatIsNone) {
  EXPECT_THROW((void)read_matmul_table("m,n,k,ns\n1,2,3\n", "t"), Error);
  EXPECT_THROW((void)read_matmul_table("m,n,k,ns\n1,2,x,4\n", "t"), Error);
  EXPECT_EQ(read_matmul_table("m,n,k,ns\n1,2,3,4\n", "t").front().shape.flops(), 12);
  EXPECT_EQ(read_matmul_table("m,n,k,ns\n1,1,1,1e15\n", "t").front().ns, 1e15);
  EXPECT_THROW((void)read_matmul_table("m,n,k,ns\n1,1,1,1.001e15\n", "t"), Error);
}

}  // namespace
}  // namespace longhaul::profile
