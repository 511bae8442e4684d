#include "tensor_ops_suite.hpp"

namespace longhaul::nn {

namespace {

using naive::Numbers;

/// batch, sequence, heads, kv_heads, head_size; past 128 rows and past a warp, odd numbers too.
constexpr AttentionShape kAttentionShapes[] = {
    {1, 1, 1, 1, 2},    {1, 5, 2, 1, 6},   {3, 7, 6, 2, 10},  {2, 33, 4, 4, 8},
    {1, 130, 4, 1, 16}, {2, 65, 3, 3, 64}, {1, 70, 2, 1, 128}};

std::size_t width_of_output(const AttentionShape& shape) {
  return static_cast<std::size_t>(shape.heads) * static_cast<std::size_t>(shape.head_size);
}

std::size_t rows_of_sums(const AttentionShape& shape) {
  return shape.tokens() * static_cast<std::size_t>(shape.heads);
}

::testing::Message shown(const AttentionShape& shape) {
  return ::testing::Message() << shape.batch << " x " << shape.sequence << ", " << shape.heads
                              << "/" << shape.kv_heads << " heads of " << shape.head_size;
}

TEST_P(TensorOpsSuite, QueriesAndKeysTurnWithTheirPosition) {
  for (const AttentionShape& shape : kAttentionShapes) {
    SCOPED_TRACE(shown(shape));
    for (const float theta : {10'000.0F, 500'000.0F}) {
      const Tensor qkv = random(shape.tokens() * shape.width());
      const Numbers before = qkv.read();
      math().rotary(shape, theta, Direction::forward, qkv);
      expect_near(qkv, naive::rotary(shape, theta, Direction::forward, before));
      const Numbers turned = qkv.read();
      math().rotary(shape, theta, Direction::inverse, qkv);
      expect_near(qkv, naive::rotary(shape, theta, Direction::inverse, turned));
      expect_near(qkv, before, 2);
    }
  }
}

TEST_P(TensorOpsSuite, TurnsOfDistantPositionsAreExact) {
  const AttentionShape shape{1, 5000, 1, 1, 4};
  const Tensor qkv = random(shape.tokens() * shape.width());
  const Numbers before = qkv.read();
  math().rotary(shape, 500'000, Direction::forward, qkv);
  expect_near(qkv, naive::rotary(shape, 500'000, Direction::forward, before));
}

TEST_P(TensorOpsSuite, AttentionOfEachHead) {
  for (const AttentionShape& shape : kAttentionShapes) {
    SCOPED_TRACE(shown(shape));
    const Tensor qkv = random(shape.tokens() * shape.width(), working(), 2),
                 out = tensor(shape.tokens() * width_of_output(shape)),
                 sums = tensor(rows_of_sums(shape), NumberType::f32);
    math().attention(shape, qkv, out, sums);
    const auto expected = naive::attention(shape, qkv.read());
    expect_near(out, expected.out);
    expect_near(sums, expected.log_sums, 2);
  }
}

TEST_P(TensorOpsSuite, ScoresFarFromZeroStayFinite) {
  const AttentionShape shape{1, 3, 1, 1, 2};
  Tensor qkv = tensor(18);
  qkv.write({1000, 0, 1000, 0, 1, 2, 1000, 0, -1000, 0, 3, 4, -1000, 0, -1000, 0, 5, 6});
  const Tensor out = tensor(6), sums = tensor(3, NumberType::f32);
  math().attention(shape, qkv, out, sums);
  expect_near(out, {1, 2, 1, 2, 4, 5});
}

TEST_P(TensorOpsSuite, LaterTokensChangeNothingBefore) {
  const AttentionShape shape{2, 40, 4, 2, 8};
  Tensor qkv = random(shape.tokens() * shape.width());
  const Tensor out = tensor(shape.tokens() * width_of_output(shape)),
               sums = tensor(rows_of_sums(shape), NumberType::f32);
  math().attention(shape, qkv, out, sums);
  const Numbers before = out.read();
  const std::size_t changed = 23;  // of the first sequence
  const Tensor other = random(shape.width());
  math().copy(other, qkv.view().part(changed * shape.width(), shape.width()));
  math().attention(shape, qkv, out, sums);
  const Numbers after = out.read();
  const std::size_t width = width_of_output(shape);
  for (std::size_t token = 0; token < shape.tokens(); ++token) {
    const Numbers row{after.begin() + static_cast<std::ptrdiff_t>(token * width),
                      after.begin() + static_cast<std::ptrdiff_t>((token + 1) * width)};
    const Numbers old{before.begin() + static_cast<std::ptrdiff_t>(token * width),
                      before.begin() + static_cast<std::ptrdiff_t>((token + 1) * width)};
    EXPECT_EQ(row == old, token < changed || token >= 40) << "token " << token;
  }
}

TEST_P(TensorOpsSuite, AttentionGradients) {
  for (const AttentionShape& shape : kAttentionShapes) {
    SCOPED_TRACE(shown(shape));
    const Tensor qkv = random(shape.tokens() * shape.width(), working(), 2),
                 out = tensor(shape.tokens() * width_of_output(shape)),
                 sums = tensor(rows_of_sums(shape), NumberType::f32),
                 dout = random(shape.tokens() * width_of_output(shape)),
                 dqkv = random(shape.tokens() * shape.width());
    math().attention(shape, qkv, out, sums);
    math().attention_gradient(shape, qkv, out, sums, dout, dqkv);
    expect_near(dqkv, naive::attention_gradient(shape, qkv.read(), dout.read()), 2);
  }
}

}  // namespace

}  // namespace longhaul::nn
