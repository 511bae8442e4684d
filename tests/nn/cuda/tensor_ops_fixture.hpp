#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "cuda/accelerator.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cuda/cuda_tensor_ops.hpp"
#include "nn/cuda/factory.hpp"
#include "tensor_ops_suite.hpp"

namespace longhaul::nn {

/// Error of one rounding to bf16, which keeps 8 bits, relative to the number.
constexpr double kRounding = 0x1p-8;
/// Error of fp32 sums in another order than the CPU reference's.
constexpr double kOrder = 1e-5;

/// A GPU (or the emulator for one) beside the CPU reference, which is given the same rounded
/// numbers.
class CudaMathTest : public ::testing::Test {
protected:
  void SetUp() override {
    const std::string why = cuda::why_no_accelerator();
    if (!why.empty()) GTEST_SKIP() << why;
    gpu_ = std::make_unique<CudaTensorOps>(0);
    cpu_ = make_cpu_math();
  }

  [[nodiscard]] CudaTensorOps& gpu() { return *gpu_; }
  [[nodiscard]] TensorOps& cpu() { return *cpu_; }

  /// The same numbers on both.
  struct OnBoth {
    Tensor gpu, cpu;
  };
  [[nodiscard]] OnBoth random(std::size_t count, NumberType type = NumberType::bf16,
                              float bound = 1) {
    OnBoth made{{gpu(), count, type}, {cpu(), count, NumberType::f32}};
    gpu().fill_random(++seed_, bound, made.gpu);
    const naive::Numbers numbers = made.gpu.read();
    made.cpu.write({numbers.begin(), numbers.end()});
    return made;
  }
  /// Numbers not yet written: not a number, on both.
  [[nodiscard]] OnBoth poisoned(std::size_t count, NumberType type = NumberType::bf16) {
    OnBoth made{{gpu(), count, type}, {cpu(), count, NumberType::f32}};
    const std::vector<float> poison(count, std::numeric_limits<float>::quiet_NaN());
    made.gpu.write(poison);
    made.cpu.write(poison);
    return made;
  }
  [[nodiscard]] OnBoth integers(const std::vector<std::int32_t>& numbers) {
    OnBoth made{{gpu(), numbers.size(), NumberType::i32}, {cpu(), numbers.size(), NumberType::i32}};
    gpu().copy_in(std::span{numbers}, made.gpu);
    cpu().copy_in(std::span{numbers}, made.cpu);
    return made;
  }
  /// Norm-wise; a number that was not written fails.
  static void expect_equal(const OnBoth& both, double tolerance) {
    const double off = naive::distance(both.gpu.read(), both.cpu.read());
    EXPECT_TRUE(off <= tolerance) << off << " against " << tolerance;
  }

private:
  std::unique_ptr<CudaTensorOps> gpu_;
  std::unique_ptr<TensorOps> cpu_;
  std::uint64_t seed_ = 40;
};

}  // namespace longhaul::nn
