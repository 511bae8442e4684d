// Times of single calls.
#include "nn/timed_tensor_ops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/memory.hpp"

namespace longhaul::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

struct TwoMaths {
  CpuTensorOps plain;
  TimedTensorOps timed{plain};
  DeviceMemory memory{timed, 0};
};

TEST(TimedMath, DoesWhatTheOtherDoes) {
  TwoMaths two;
  const Buffer a = two.memory.take(6 * 5, "a");
  const Buffer b = two.memory.take(5 * 4, "b");
  const Buffer c = two.memory.take(6 * 4, "c");
  two.timed.fill_random(1, 1, a.view());
  two.timed.fill_random(2, 1, b.view());
  two.timed.gemm({6, 4, 5}, a.view(), b.view(), c.view());
  std::vector<float> found(24), expected(24);
  two.timed.copy_out(c.view(), found);
  two.plain.gemm({6, 4, 5}, a.view(), b.view(), c.view());
  two.plain.copy_out(c.view(), expected);
  EXPECT_EQ(found, expected);
}

TEST(TimedMath, SaysWhatItsTimesDependOn) {
  TwoMaths two;
  const Buffer a = two.memory.take(24, "a");
  const Buffer b = two.memory.take(24, "b");
  const Buffer c = two.memory.take(16, "c");
  two.timed.fill_random(1, 1, a.view());
  two.timed.fill_random(1, 1, b.view());
  two.timed.zero(c.view());
  two.timed.gemm({4, 4, 6, false, true, true}, a.view(), b.view(), c.view());
  two.timed.add(a.view(), b.view(), b.view());
  const std::vector<TensorOpsCall> calls = two.timed.take();
  EXPECT_THAT(calls, ElementsAre(Field(&TensorOpsCall::operation, "zero"),
                                 Field(&TensorOpsCall::operation, "gemm"),
                                 Field(&TensorOpsCall::operation, "add")));
  EXPECT_EQ(calls[1].shape, "m=4 n=4 k=6 nt add");
  EXPECT_EQ(calls[1].flops, 2 * 4 * 4 * 6);
  EXPECT_EQ(calls[1].bytes, 4 * (24 + 24 + 16 + 16));
  EXPECT_GT(calls[1].time, Duration::zero());
  EXPECT_EQ(calls[2].shape, "count=24");
  EXPECT_THAT(two.timed.take(), IsEmpty());
}

TEST(TimedMath, CountsAttentionBehindTheMaskOnly) {
  TwoMaths two;
  const AttentionShape shape{2, 8, 4, 2, 16};
  const Buffer qkv = two.memory.take(shape.tokens() * shape.width(), "qkv");
  const Buffer out = two.memory.take(shape.tokens() * 64, "out");
  const Buffer sums = two.memory.take(8 * 8, NumberType::f32, "sums");
  two.timed.fill_random(1, 1, qkv.view());
  two.timed.attention(shape, qkv.view(), out.view(), sums.view());
  const std::vector<TensorOpsCall> calls = two.timed.take();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].shape, "batch=2 sequence=8 heads=4 kv_heads=2 head_size=16");
  EXPECT_EQ(calls[0].flops, 2.0 * 2 * 8 * 8 * 64);  // 2 b s^2 d
}

}  // namespace
}  // namespace longhaul::nn
