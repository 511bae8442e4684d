#include <cmath>

#include "tensor_ops_suite.hpp"

namespace longhaul::nn {

namespace {

using naive::Numbers;

TEST_P(TensorOpsSuite, GradientDescent) {
  const Tensor gradient = random(77, NumberType::f32), master = random(77, NumberType::f32),
               weights = tensor(77);
  Numbers expected = master.read();
  const Numbers slope = gradient.read();
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= 0.25 * slope[i];
  math().sgd(0.25F, gradient, master, weights);
  expect_near(master, expected);
  const Tensor rounded = tensor(77);
  math().copy(master, rounded);
  EXPECT_EQ(weights.read(), rounded.read());
  math().sgd(0.25F, gradient, master, master);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] -= 0.25 * slope[i];
  expect_near(master, expected);
}

/// By hand: gradient 0.5 twice, then -1. beta1 0.5 and beta2 0.75 keep the numbers short.
TEST_P(TensorOpsSuite, AdamWByHand) {
  AdamW options{0.1F, 0.5F, 0.75F, 0, 0.5F, 1};
  Tensor gradient = tensor(1, NumberType::f32), master = tensor(1, NumberType::f32);
  const Tensor mean = tensor(1, NumberType::f32), square = tensor(1, NumberType::f32),
               weights = tensor(1);
  math().zero(mean);
  math().zero(square);
  master.write({1});
  gradient.write({0.5F});
  math().adamw(options, gradient, mean, square, master, weights);
  expect_near(mean, {0.25});
  expect_near(square, {0.0625});
  expect_near(master, {0.95 - 0.1});  // mean / 0.5 over sqrt(square / 0.25): 0.5 over 0.5
  options.step = 2;
  math().adamw(options, gradient, mean, square, master, weights);
  expect_near(mean, {0.375});
  expect_near(square, {0.109375});
  expect_near(master, {0.85 * 0.95 - 0.1});  // 0.375 / 0.75 over sqrt(0.109375 / 0.4375)
  options.step = 3;
  gradient.write({-1});
  math().adamw(options, gradient, mean, square, master, weights);
  expect_near(mean, {-0.3125});
  expect_near(square, {0.33203125});
  const double ratio = (-0.3125 / 0.875) / std::sqrt(0.33203125 / 0.578125);
  expect_near(master, {0.7075 * 0.95 - 0.1 * ratio});
  const Tensor rounded = tensor(1);
  math().copy(master, rounded);
  EXPECT_EQ(weights.read(), rounded.read());
}

TEST_P(TensorOpsSuite, AdamWOfPartsIsAdamWOfTheWhole) {
  const std::size_t count = 1003;
  const AdamW options{};
  const Tensor gradient = random(count, NumberType::f32);
  std::vector<Tensor> whole, parts;
  for (auto* const set : {&whole, &parts}) {
    for (int i = 0; i < 3; ++i) {
      set->push_back(tensor(count, NumberType::f32));
      math().fill_random(5, i == 2 ? 1.0F : 0.0F, set->back());
    }
    set->push_back(tensor(count));
  }
  math().adamw(options, gradient, whole[0], whole[1], whole[2], whole[3]);
  for (const auto& [first, length] : {std::pair{0, 11}, {11, 500}, {511, 492}}) {
    const auto part = [from = static_cast<std::size_t>(first),
                       size = static_cast<std::size_t>(length)](const Tensor& of) {
      return of.view().part(from, size);
    };
    math().adamw(options, part(gradient), part(parts[0]), part(parts[1]), part(parts[2]),
                 part(parts[3]));
  }
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i].read(), parts[i].read());
}

TEST_P(TensorOpsSuite, NothingMovesWithoutGradientAndDecay) {
  AdamW options{};
  options.weight_decay = 0;
  const Tensor gradient = tensor(9, NumberType::f32), master = random(9, NumberType::f32),
               mean = tensor(9, NumberType::f32), square = tensor(9, NumberType::f32);
  for (const Tensor* const zeroed : {&gradient, &mean, &square}) math().zero(*zeroed);
  const Numbers before = master.read();
  math().adamw(options, gradient, mean, square, master, master);
  EXPECT_EQ(master.read(), before);
}

}  // namespace

}  // namespace longhaul::nn
