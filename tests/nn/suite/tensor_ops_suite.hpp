#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "naive.hpp"
#include "nn/tensor_ops.hpp"

/// Every operation of a TensorOps against naive.hpp. A test program links the object library
/// `tensor_ops_suite` and says
///   INSTANTIATE_TEST_SUITE_P(Cpu, TensorOpsSuite, ::testing::Values(TensorOpsUnderTest{"cpu",
///   make_cpu_math}));
/// Tolerances follow from the working type.
namespace longhaul::nn {

struct TensorOpsUnderTest {
  std::string name;
  std::function<std::unique_ptr<TensorOps>()> make;
  std::function<std::string()> why_not{};  ///< why it cannot run here; empty: it can
};

inline void PrintTo(const TensorOpsUnderTest& math, std::ostream* out) { *out << math.name; }

/// Device memory of a test, given back at its end.
class Tensor {
public:
  Tensor(TensorOps& math, std::size_t count, NumberType type);
  Tensor(Tensor&& other) noexcept
      : math_{other.math_}, view_{std::exchange(other.view_, ArrayView{})} {}
  Tensor& operator=(Tensor&&) = delete;
  ~Tensor();

  [[nodiscard]] ArrayView view() const { return view_; }
  /// A tensor stands wherever a view is asked for.
  operator ArrayView() const { return view_; }
  void write(const std::vector<float>& numbers) { math_->copy_in(numbers, view_); }
  /// The numbers on the device, rounded as they are.
  [[nodiscard]] naive::Numbers read() const;

private:
  TensorOps* math_;
  ArrayView view_;
};

class TensorOpsSuite : public ::testing::TestWithParam<TensorOpsUnderTest> {
protected:
  void SetUp() override;

  [[nodiscard]] TensorOps& math() { return *math_; }
  [[nodiscard]] NumberType working() const { return math_->working_type(); }
  [[nodiscard]] Tensor tensor(std::size_t count, NumberType type);
  [[nodiscard]] Tensor tensor(std::size_t count) { return tensor(count, working()); }
  /// Uniform in (-bound, bound), another stretch of a series each time.
  [[nodiscard]] Tensor random(std::size_t count, NumberType type, float bound = 1);
  [[nodiscard]] Tensor random(std::size_t count) { return random(count, working()); }
  [[nodiscard]] Tensor integers(const naive::Tokens& numbers);
  /// Norm-wise, and no number further off than ten times that of the largest. fp32: 5e-6; bf16:
  /// 8e-3 (2^-9 for the result, the rest for what is rounded on the way); times `factor`.
  void expect_near(const Tensor& got, const naive::Numbers& expected, double factor = 1);
  void expect_near(const Tensor& got, const naive::Numbers& expected, NumberType as_exact_as,
                   double factor = 1);

private:
  std::unique_ptr<TensorOps> math_;
  std::uint64_t seed_ = 1;
};

}  // namespace longhaul::nn
