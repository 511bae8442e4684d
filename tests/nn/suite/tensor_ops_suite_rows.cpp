#include <cmath>

#include "tensor_ops_suite.hpp"

/// Norm, SwiGLU, embedding and cross-entropy.
namespace longhaul::nn {

namespace {

using naive::Numbers;
using naive::Tokens;

struct Rows {
  std::size_t rows;
  int width;
  [[nodiscard]] std::size_t columns() const { return static_cast<std::size_t>(width); }
  [[nodiscard]] std::size_t count() const { return rows * columns(); }
};

constexpr Rows kRows[] = {{1, 1}, {3, 7}, {5, 64}, {17, 130}, {2, 1000}, {130, 8}, {3, 4096}};

TEST_P(TensorOpsSuite, RowsAreDividedByTheirRootMeanSquare) {
  for (const Rows rows : kRows) {
    SCOPED_TRACE(rows.width);
    const Tensor x = random(rows.count()), weight = random(rows.columns()),
                 y = tensor(rows.count()), inverse = tensor(rows.rows, NumberType::f32);
    math().rms_norm(x, weight, rows.width, y, inverse);
    expect_near(y, naive::rms_norm(x.read(), weight.read(), rows.width));
    expect_near(inverse, naive::inverse_rms(x.read(), rows.width));
  }
}

TEST_P(TensorOpsSuite, ARowOfZerosStaysFinite) {
  const Tensor x = tensor(16), weight = random(16), y = tensor(16),
               inverse = tensor(1, NumberType::f32);
  math().zero(x);
  math().rms_norm(x, weight, 16, y, inverse);
  EXPECT_EQ(y.read(), Numbers(16));
  expect_near(inverse, {1 / std::sqrt(naive::kNormEpsilon)});
}

TEST_P(TensorOpsSuite, NormGradients) {
  for (const Rows rows : kRows) {
    SCOPED_TRACE(rows.width);
    const Tensor x = random(rows.count()), weight = random(rows.columns()),
                 dy = random(rows.count()), y = tensor(rows.count()),
                 inverse = tensor(rows.rows, NumberType::f32), dx = random(rows.count()),
                 dweight = random(rows.columns(), NumberType::f32);
    const auto gradients =
        naive::rms_norm_gradients(x.read(), weight.read(), dy.read(), rows.width);
    Numbers sum = dx.read(), weight_sum = dweight.read();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradients.dx[i];
    for (std::size_t i = 0; i < weight_sum.size(); ++i) weight_sum[i] += gradients.dweight[i];
    math().rms_norm(x, weight, rows.width, y, inverse);
    math().rms_norm_input_gradient(x, weight, inverse, dy, rows.width, true, dx);
    expect_near(dx, sum);
    math().rms_norm_weight_gradient(x, inverse, dy, rows.width, dweight);
    expect_near(dweight, weight_sum);
    if (rows.width == 1) continue;  // the gradient all but vanishes: nothing to hold it against
    math().rms_norm_input_gradient(x, weight, inverse, dy, rows.width, false, dx);
    expect_near(dx, gradients.dx);
  }
}

TEST_P(TensorOpsSuite, GatedUnitsAndTheirGradients) {
  for (const Rows rows : kRows) {
    SCOPED_TRACE(rows.width);
    const Tensor both = random(2 * rows.count(), working(), 6), dy = random(rows.count()),
                 y = tensor(rows.count()), gradient = tensor(2 * rows.count());
    math().swiglu(both, rows.width, y);
    expect_near(y, naive::swiglu(both.read(), rows.width));
    math().swiglu_gradient(both, dy, rows.width, gradient);
    expect_near(gradient, naive::swiglu_gradient(both.read(), dy.read(), rows.width));
  }
}

TEST_P(TensorOpsSuite, GatesFarFromZeroStayFinite) {
  Tensor both = tensor(8), dy = tensor(4);
  both.write({200, -200, 1e4F, -1e4F, 2, 2, 2, 2});
  dy.write({1, 1, 1, 1});
  const Tensor y = tensor(4), gradient = tensor(8);
  math().swiglu(both, 4, y);
  expect_near(y, {400, 0, 2e4, 0});
  math().swiglu_gradient(both, dy, 4, gradient);
  expect_near(gradient, {2, 0, 2, 0, 200, 0, 1e4, 0});
}

TEST_P(TensorOpsSuite, TokensTakeTheirRowsAndGiveBackTheirSums) {
  for (const int width : {1, 6, 130}) {
    const Tokens numbers{4, 0, 4, 4, 8, 1, 0, 4};
    const auto columns = static_cast<std::size_t>(width);
    const Tensor tokens = integers(numbers), table = random(9 * columns), y = tensor(8 * columns),
                 dy = random(8 * columns);
    math().embed(tokens, table, width, y);
    EXPECT_EQ(y.read(), naive::embed(numbers, table.read(), width));
    const Tensor dtable = random(9 * columns, NumberType::f32),
                 again = tensor(9 * columns, NumberType::f32);
    math().copy(dtable, again);
    Numbers expected = naive::embed_gradient(numbers, dy.read(), width, 9);
    const Numbers before = dtable.read();
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
    math().embed_gradient(tokens, dy, width, dtable);
    math().embed_gradient(tokens, dy, width, again);
    expect_near(dtable, expected);
    EXPECT_EQ(dtable.read(), again.read()) << "the same sum in every run";
  }
}

/// 400 times the same token, so that an order of summation would show.
TEST_P(TensorOpsSuite, SumsOfOneTokenAreTheSameInEveryRun) {
  const Tensor tokens = integers(Tokens(400, 2)), dy = random(400 * 64);
  Numbers first;
  for (int run = 0; run < 5; ++run) {
    const Tensor dtable = tensor(4 * 64, NumberType::f32);
    math().zero(dtable);
    math().embed_gradient(tokens, dy, 64, dtable);
    if (run == 0) first = dtable.read();
    EXPECT_EQ(dtable.read(), first);
  }
}

TEST_P(TensorOpsSuite, CrossEntropyAddsTheLossAndLeavesTheGradient) {
  for (const int vocabulary : {1, 7, 130, 5000}) {
    SCOPED_TRACE(vocabulary);
    const Tokens goals{0, -1, vocabulary - 1, vocabulary / 2, -5};
    const auto columns = static_cast<std::size_t>(vocabulary);
    const Tensor targets = integers(goals), logits = random(5 * columns, working(), 4);
    Tensor loss = tensor(1, NumberType::f32);
    loss.write({0.5F});
    naive::Loss expected = naive::cross_entropy(goals, vocabulary, logits.read());
    for (double& number : expected.gradient) number *= 0.125;
    math().cross_entropy(targets, vocabulary, 0.125F, logits, loss);
    expect_near(loss, {0.5 + 0.125 * expected.sum});
    expect_near(logits, expected.gradient);
  }
}

TEST_P(TensorOpsSuite, LogitsFarFromZeroStayFinite) {
  const Tensor targets = integers({0, 1});
  Tensor logits = tensor(6), loss = tensor(1, NumberType::f32);
  math().zero(loss);
  logits.write({1024, 0, -1024, 1024, 0, -1024});
  math().cross_entropy(targets, 3, 1, logits, loss);
  expect_near(loss, {1024});
  expect_near(logits, {0, 0, 0, 1, -1, 0});
}

}  // namespace

}  // namespace longhaul::nn
