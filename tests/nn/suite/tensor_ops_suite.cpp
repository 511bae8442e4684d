#include "tensor_ops_suite.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "nn/counter_random.hpp"

namespace longhaul::nn {

Tensor::Tensor(TensorOps& math, std::size_t count, NumberType type) : math_{&math} {
  view_ = ArrayView{nullptr, count, type};
  view_.data = math.allocate(view_.bytes());
  if (view_.data == nullptr) ADD_FAILURE() << view_.bytes() << " bytes";
}

Tensor::~Tensor() {
  if (view_.data != nullptr) math_->release(view_.data);
}

naive::Numbers Tensor::read() const {
  std::vector<float> numbers(view_.count);
  math_->copy_out(view_, numbers);
  return {numbers.begin(), numbers.end()};
}

void TensorOpsSuite::SetUp() {
  if (GetParam().why_not) {
    const std::string why = GetParam().why_not();
    if (!why.empty()) GTEST_SKIP() << why;
  }
  math_ = GetParam().make();
}

Tensor TensorOpsSuite::tensor(std::size_t count, NumberType type) { return {*math_, count, type}; }

Tensor TensorOpsSuite::random(std::size_t count, NumberType type, float bound) {
  Tensor made = tensor(count, type);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = bound * counter_random(seed_, i);
  ++seed_;
  made.write(numbers);
  return made;
}

Tensor TensorOpsSuite::integers(const naive::Tokens& numbers) {
  Tensor made = tensor(numbers.size(), NumberType::i32);
  math().copy_in(std::span{numbers}, made);
  return made;
}

void TensorOpsSuite::expect_near(const Tensor& got, const naive::Numbers& expected, double factor) {
  expect_near(got, expected, got.view().type, factor);
}

void TensorOpsSuite::expect_near(const Tensor& got, const naive::Numbers& expected,
                                 NumberType as_exact_as, double factor) {
  const double tolerance = factor * (as_exact_as == NumberType::bf16 ? 8e-3 : 5e-6);
  const naive::Numbers numbers = got.read();
  ASSERT_EQ(numbers.size(), expected.size());
  EXPECT_LE(naive::distance(numbers, expected), tolerance);
  const double largest =
      std::accumulate(expected.begin(), expected.end(), 0.0,
                      [](double most, double number) { return std::max(most, std::abs(number)); });
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    ASSERT_NEAR(numbers[i], expected[i], 10 * tolerance * largest) << "number " << i;
  }
}

namespace {

using naive::Numbers;

TEST_P(TensorOpsSuite, MemoryIsAlignedAndRefusedWhereThereIsNone) {
  std::byte* const one = math().allocate(1);
  std::byte* const other = math().allocate(1'000'000);
  for (const std::byte* const memory : {one, other}) {
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0U);
  }
  EXPECT_EQ(math().allocate(std::size_t{1} << 60U), nullptr);
  math().release(one);
  math().release(other);
}

TEST_P(TensorOpsSuite, NumbersComeBackAsTheyWentIn) {
  const std::vector<float> numbers{0, 1, -2.5F, 0x1p-20F, -0x1.8p30F, 3};
  for (const NumberType type : {NumberType::f32, NumberType::bf16}) {
    Tensor there = tensor(numbers.size(), type);
    there.write(numbers);
    EXPECT_EQ(there.read(), Numbers(numbers.begin(), numbers.end()));
  }
}

TEST_P(TensorOpsSuite, Bf16RoundsToTheNearestEvenNumber) {
  Tensor there = tensor(4, NumberType::bf16);
  there.write({1 + 0x1p-8F, 1 + 0x3p-8F, 1 + 0x1.1p-8F, -1 - 0x0.fp-8F});
  EXPECT_EQ(there.read(), (Numbers{1, 1 + 0x1p-6, 1 + 0x1p-7, -1}));
}

TEST_P(TensorOpsSuite, CopiesOnTheDeviceConvert) {
  const Tensor from = random(37, NumberType::f32);
  const Tensor half = tensor(37, NumberType::bf16), back = tensor(37, NumberType::f32);
  Tensor rounded = tensor(37, NumberType::bf16);
  const Numbers numbers = from.read();
  rounded.write({numbers.begin(), numbers.end()});
  math().copy(from, half);
  math().copy(half, back);
  EXPECT_EQ(half.read(), rounded.read());
  EXPECT_EQ(back.read(), rounded.read());
  const Tensor same = tensor(37, NumberType::bf16);
  math().copy(half, same);
  EXPECT_EQ(same.read(), rounded.read());
}

TEST_P(TensorOpsSuite, PartsOfAViewAreCopiedAndZeroedAlone) {
  for (const NumberType type : {NumberType::f32, NumberType::bf16}) {
    const Tensor whole = random(50, type);
    Numbers expected = whole.read();
    math().zero(whole.view().part(3, 5));
    std::fill_n(expected.begin() + 3, 5, 0.0);
    math().copy(whole.view().part(20, 9), whole.view().part(1, 9));
    std::copy_n(expected.begin() + 20, 9, expected.begin() + 1);
    EXPECT_EQ(whole.read(), expected);
  }
}

TEST_P(TensorOpsSuite, RandomNumbersAreThoseOfTheCounter) {
  for (const NumberType type : {NumberType::f32, NumberType::bf16}) {
    const Tensor filled = tensor(1001, type);
    Tensor expected = tensor(1001, type);
    math().fill_random(77, 0.25F, filled);
    std::vector<float> numbers(1001);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.25F * counter_random(77, i);
    expected.write(numbers);
    EXPECT_EQ(filled.read(), expected.read());
  }
}

TEST_P(TensorOpsSuite, SumsAddUpInPlaceToo) {
  for (const std::size_t count : {1U, 7U, 1000U}) {
    const Tensor a = random(count), b = random(count), sum = tensor(count);
    Numbers expected = a.read();
    const Numbers second = b.read();
    for (std::size_t i = 0; i < count; ++i) expected[i] += second[i];
    math().add(a, b, sum);
    expect_near(sum, expected);
    math().add(a, b, a);
    EXPECT_EQ(a.read(), sum.read());
  }
}

constexpr Gemm kShapes[] = {{1, 1, 1},    {3, 5, 7},     {8, 8, 8},  {33, 17, 65},
                            {1, 130, 40}, {64, 96, 128}, {96, 1, 9}, {129, 66, 31}};

TEST_P(TensorOpsSuite, ProductsInEveryOrderOfStorage) {
  for (Gemm shape : kShapes) {
    for (const int way : {0, 1, 2, 3, 4, 5, 6, 7}) {
      shape.transpose_a = (way & 1) != 0;
      shape.transpose_b = (way & 2) != 0;
      shape.accumulate = (way & 4) != 0;
      SCOPED_TRACE(::testing::Message()
                   << shape.m << " x " << shape.n << " x " << shape.k << ", way " << way);
      const Tensor a = random(static_cast<std::size_t>(shape.m * shape.k));
      const Tensor b = random(static_cast<std::size_t>(shape.k * shape.n));
      for (const NumberType type : {working(), NumberType::f32}) {
        const Tensor c = random(static_cast<std::size_t>(shape.m * shape.n), type);
        const Numbers expected =
            naive::gemm(shape, a.read(), b.read(), shape.accumulate ? c.read() : Numbers{});
        math().gemm(shape, a, b, c);
        expect_near(c, expected);
      }
    }
  }
}

TEST_P(TensorOpsSuite, ProductsOverwriteWhateverWasThere) {
  const Gemm shape{5, 4, 3};
  const Tensor a = random(15), b = random(12);
  Tensor c = tensor(20);
  c.write(std::vector<float>(20, std::nanf("")));
  math().gemm(shape, a, b, c);
  expect_near(c, naive::gemm(shape, a.read(), b.read()));
}

}  // namespace

}  // namespace longhaul::nn
