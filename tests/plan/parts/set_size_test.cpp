#include "plan/parts/set_size.hpp"

#include <gtest/gtest.h>

namespace longhaul::plan {
namespace {

TEST(SetSize, KeepsWholeBlocks) {
  GradientCompression compress;  // 1%, blocks of 16, split
  EXPECT_EQ(numbers_kept(compress, 16'000, 1), 160);
  EXPECT_EQ(numbers_kept(compress, 16'000, 2), 80);
  EXPECT_EQ(numbers_kept(compress, 16'000, 4), 32) << "2.5 blocks";
  EXPECT_EQ(numbers_kept(compress, 16'000, 100), 16) << "one block at least";
  compress.share = KeptShare::each;
  EXPECT_EQ(numbers_kept(compress, 16'000, 4), 160);
  compress.method = CompressMethod::randomk;
  EXPECT_EQ(numbers_kept(compress, 16'000, 100), 160) << "whole blocks are drawn";
  EXPECT_EQ(numbers_kept(compress, 15, 1), 15);
  compress.method = CompressMethod::topk;
  EXPECT_EQ(numbers_kept(compress, 16'099, 4), 160);
  EXPECT_EQ(numbers_kept(compress, 3, 1), 1);
  compress.keep = 0.29;
  EXPECT_EQ(numbers_kept(compress, 100, 1), 29) << "28.999999999999996 in fp64";
  compress.keep = 1;
  EXPECT_EQ(numbers_kept(compress, 16'099, 1), 16'099);
  compress.method = CompressMethod::block;
  EXPECT_EQ(numbers_kept(compress, 5, 1), 5) << "no more than there are";
}

TEST(SetSize, WritesNumbersAndPlaces) {
  GradientCompression compress;
  compress.share = KeptShare::each;
  const auto bytes = [&](SetIndex index, SetValues values) {
    compress.index = index;
    compress.values = values;
    return set_size(compress, 1'600'000, 8).count();
  };
  EXPECT_EQ(bytes(SetIndex::coo32, SetValues::f32), 16'000 * 8) << "the paper's COO";
  EXPECT_EQ(bytes(SetIndex::coo16, SetValues::f32), 16'000 * 6);
  EXPECT_EQ(bytes(SetIndex::coo16, SetValues::bf16), 16'000 * 4);
  EXPECT_EQ(bytes(SetIndex::coo32, SetValues::int8), 16'000 * 5);
  // 8.1 bits a block for its place: 4.06 and 2.06 bytes a number.
  EXPECT_NEAR(static_cast<double>(bytes(SetIndex::gaps, SetValues::f32)) / 16'000, 4.063, 0.001);
  EXPECT_NEAR(static_cast<double>(bytes(SetIndex::gaps, SetValues::bf16)) / 16'000, 2.063, 0.001);
}

TEST(SetSize, DenseOnesHaveNoPlaces) {
  GradientCompression compress;
  const auto bytes = [&](CompressMethod method) {
    compress.method = method;
    return set_size(compress, 1000, 4).count();
  };
  EXPECT_EQ(bytes(CompressMethod::none), 4000);
  EXPECT_EQ(bytes(CompressMethod::fp16), 2000);
  EXPECT_EQ(bytes(CompressMethod::int8), 1000);
  compress.keep = 1;
  compress.share = KeptShare::each;
  compress.index = SetIndex::gaps;
  EXPECT_EQ(bytes(CompressMethod::topk), 4000) << "no place to say where all are kept";
}

}  // namespace
}  // namespace longhaul::plan
