#include <gmock/gmock.h>

#include "base/error.hpp"
#include "nn/cuda/tensor_ops_fixture.hpp"

/// Order, memory and repetition on one stream.
namespace longhaul::nn {
namespace {

using CudaMathDevice = CudaMathTest;

/// Every sum has one order: two runs give the same bits.
TEST_F(CudaMathDevice, EqualCallsGiveEqualBits) {
  constexpr AttentionShape kShape{1, 50, 4, 2, 16};
  constexpr std::size_t kRows = 50;
  const OnBoth qkv = random(kRows * kShape.width()), dout = random(kRows * 64);
  const OnBoth x = random(kRows * 72), inverse = random(kRows, NumberType::f32);
  const auto run = [&] {
    const OnBoth out = poisoned(kRows * 64), sums = poisoned(kRows * 4, NumberType::f32),
                 dqkv = poisoned(kRows * kShape.width()), dweight = poisoned(72, NumberType::f32),
                 product = poisoned(std::size_t{72} * 72, NumberType::f32);
    gpu().attention(kShape, qkv.gpu, out.gpu, sums.gpu);
    gpu().attention_gradient(kShape, qkv.gpu, out.gpu, sums.gpu, dout.gpu, dqkv.gpu);
    gpu().zero(dweight.gpu);
    gpu().rms_norm_weight_gradient(x.gpu, inverse.gpu, x.gpu, 72, dweight.gpu);
    gpu().gemm({72, 72, kRows, true, false}, x.gpu, x.gpu, product.gpu);
    naive::Numbers all = dqkv.gpu.read();
    for (const OnBoth* const more : {&dweight, &product}) {
      const naive::Numbers numbers = more->gpu.read();
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    return all;
  };
  const naive::Numbers first = run();
  for (const double number : first) ASSERT_EQ(number, number);
  EXPECT_EQ(first, run());
}

/// Memory given back while work on it is under way may be handed out at once.
TEST_F(CudaMathDevice, MemoryChangesHandsInTheOrderOfTheStream) {
  constexpr std::size_t kCount = 100'000;
  const Tensor sum{gpu(), kCount, NumberType::f32};
  gpu().zero(sum);
  for (int round = 1; round <= 20; ++round) {
    const Tensor fresh{gpu(), kCount, NumberType::f32};
    gpu().fill_random(1, static_cast<float>(round), fresh);
    gpu().add(sum, fresh, sum);
  }
  const Tensor once{gpu(), kCount, NumberType::f32};
  gpu().fill_random(1, 210, once);  // 1 + 2 + ... + 20
  EXPECT_LE(naive::distance(sum.read(), once.read()), kOrder);
}

/// More than the pieces through which copies go, and the source may change at once.
TEST_F(CudaMathDevice, LargeCopiesComeThroughWhole) {
  constexpr std::size_t kCount = 5 * (Staging::kPieceBytes / 4) + 17;
  for (const NumberType type : {NumberType::f32, NumberType::bf16}) {
    Tensor there{gpu(), kCount, type};
    std::vector<float> numbers(kCount);
    for (std::size_t i = 0; i < kCount; ++i) numbers[i] = static_cast<float>(i % 256);
    naive::Numbers expected{numbers.begin(), numbers.end()};
    there.write(numbers);
    numbers.assign(kCount, -1);
    EXPECT_EQ(there.read(), expected);
  }
}

TEST_F(CudaMathDevice, ShapesOfNothingDoNothing) {
  const Tensor nothing{gpu(), 0, NumberType::bf16};
  const Tensor none{gpu(), 0, NumberType::i32};
  Tensor some{gpu(), 8, NumberType::bf16};
  some.write(std::vector<float>(8, 1));
  gpu().add(nothing, nothing, nothing);
  gpu().copy(nothing, nothing);
  gpu().zero(nothing);
  gpu().embed(none, some, 8, nothing);
  gpu().rms_norm_weight_gradient(nothing, nothing, nothing, 8, some);
  EXPECT_EQ(nothing.read().size(), 0U);
  EXPECT_EQ(some.read(), naive::Numbers(8, 1));
}

TEST(CudaDevice, ThatIsNotThereIsRefused) {
  if (const std::string why = cuda::why_no_accelerator(); !why.empty()) {
    EXPECT_THROW(static_cast<void>(make_cuda_tensor_ops(0)), Error);
    GTEST_SKIP() << why;
  }
  try {
    static_cast<void>(make_cuda_tensor_ops(1'000));
    FAIL() << "device 1000";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no CUDA device 1000 (there are"));
    EXPECT_EQ(error.code(), ExitCode::bad_input);
  }
}

}  // namespace
}  // namespace longhaul::nn
