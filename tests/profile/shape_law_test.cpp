#include "profile/shape_law.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::profile {
namespace {

/// 5 us and 2 m n k over 100 FLOPs a ns.
Duration product_time(std::int64_t m, std::int64_t n, std::int64_t k) {
  return Duration{5000 + 2 * m * n * k / 100};
}

scenario::ProfileRow product_row(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {"layer",
          "F",
          "gemm",
          fmt::format("m={} n={} k={} nt", m, n, k),
          "f16",
          1,
          product_time(m, n, k),
          0};
}

ShapeLaw law_of_products() {
  std::vector<scenario::ProfileRow> rows;
  for (const std::int64_t m : {64, 256, 1024})
    for (const std::int64_t n : {64, 512, 4096}) rows.push_back(product_row(m, n, 256));
  return ShapeLaw{rows};
}

TEST(ShapeLaw, GivesMeasuredShapesTheirOwnTime) {
  const ShapeTime time = law_of_products().at("m=256 n=512 k=256 nt");
  EXPECT_EQ(time.basis, TimeBasis::measured);
  EXPECT_EQ(time.time, product_time(256, 512, 256));
}

TEST(ShapeLaw, InterpolatesAndSaysHowFarItExtrapolates) {
  const ShapeLaw law = law_of_products();
  const ShapeTime inside = law.at("m=128 n=1000 k=256 nt");
  EXPECT_EQ(inside.basis, TimeBasis::interpolated);
  EXPECT_EQ(inside.beyond, 1);
  const auto expected = static_cast<double>(product_time(128, 1000, 256).count());
  EXPECT_NEAR(static_cast<double>(inside.time.count()), expected, 0.01 * expected);
  const ShapeTime outside = law.at("m=128 n=1000 k=768 nt");
  EXPECT_EQ(outside.basis, TimeBasis::extrapolated);
  EXPECT_NEAR(outside.beyond, 3, 1e-6);
  EXPECT_LT(law.left_out(), 0.01);
}

TEST(ShapeLaw, NeverGivesMoreWorkLessTimeWhereTheLawIsExact) {
  Random random{7};
  const ShapeLaw law = law_of_products();
  for (int i = 0; i < 200; ++i) {
    const std::int64_t m = random.between(64, 1000), n = random.between(64, 4000);
    EXPECT_LE(law.at(fmt::format("m={} n={} k=256 nt", m, n)).time,
              law.at(fmt::format("m={} n={} k=256 nt", m + 24, n + 96)).time)
        << m << ' ' << n;
  }
}

TEST(ShapeLaw, OfOneShapeScalesItsRate) {
  const ShapeLaw law{{product_row(64, 64, 256)}};
  EXPECT_EQ(law.left_out(), 0);
  EXPECT_GT(law.at("m=128 n=64 k=256 nt").time, product_time(64, 64, 256));
}

TEST(ShapeLaw, KnowsWhatOperatorsDo) {
  EXPECT_EQ(work_of("gemm", "m=3 n=8 k=4 nt"), 2 * 3 * 8 * 4);
  EXPECT_EQ(work_of("attention", "batch=2 sequence=3 heads=4 kv_heads=1 head_size=5"),
            2 * 2 * 3 * 3 * 4 * 5);
  EXPECT_EQ(work_of("copy", "count=192"), 192);
}

}  // namespace
}  // namespace longhaul::profile
