#include <numeric>

#include "nn/cuda/tensor_ops_fixture.hpp"

/// The kernels over rows, at the sizes where they take another way: packs of 8 or single numbers,
/// 1, 2 or 4 packs of each thread in registers or rows read twice, views that begin anywhere.
namespace longhaul::nn {
namespace {

using CudaMathRows = CudaMathTest;

constexpr int kWidths[] = {8, 2048, 2056, 4096, 4104, 8192, 16392, 1030};
constexpr std::size_t kSomeRows = 3;

TEST_F(CudaMathRows, NormsOfEveryWidth) {
  for (const int width : kWidths) {
    SCOPED_TRACE(width);
    const auto columns = static_cast<std::size_t>(width);
    const OnBoth x = random(kSomeRows * columns), weight = random(columns),
                 dy = random(kSomeRows * columns), y = poisoned(kSomeRows * columns),
                 inverse = poisoned(kSomeRows, NumberType::f32), dx = poisoned(kSomeRows * columns),
                 more = random(kSomeRows * columns), dweight = random(columns, NumberType::f32);
    const auto run = [&](TensorOps& math, auto of) {
      math.rms_norm(of(x), of(weight), width, of(y), of(inverse));
      math.rms_norm_input_gradient(of(x), of(weight), of(inverse), of(dy), width, false, of(dx));
      math.rms_norm_input_gradient(of(x), of(weight), of(inverse), of(dy), width, true, of(more));
      math.rms_norm_weight_gradient(of(x), of(inverse), of(dy), width, of(dweight));
    };
    run(gpu(), [](const OnBoth& both) { return both.gpu.view(); });
    run(cpu(), [](const OnBoth& both) { return both.cpu.view(); });
    expect_equal(y, kRounding + kOrder);
    expect_equal(inverse, kOrder);
    expect_equal(dx, kRounding + kOrder);
    expect_equal(more, kRounding + kOrder);
    expect_equal(dweight, kOrder);
  }
}

TEST_F(CudaMathRows, NormGradientsOfManyRowsAddUp) {
  constexpr int kWidth = 264;          // a tile of columns and a bit
  constexpr std::size_t kMany = 2300;  // more stretches than one
  const OnBoth x = random(kMany * kWidth), dy = random(kMany * kWidth),
               inverse = random(kMany, NumberType::f32), dweight = random(kWidth, NumberType::f32);
  gpu().rms_norm_weight_gradient(x.gpu, inverse.gpu, dy.gpu, kWidth, dweight.gpu);
  cpu().rms_norm_weight_gradient(x.cpu, inverse.cpu, dy.cpu, kWidth, dweight.cpu);
  expect_equal(dweight, kOrder);
}

TEST_F(CudaMathRows, SwiGluOfEveryWidth) {
  for (const int width : {1, 7, 8, 2048, 2056, 4099}) {
    SCOPED_TRACE(width);
    const auto columns = static_cast<std::size_t>(width);
    const OnBoth gate_up = random(2 * kSomeRows * columns, NumberType::bf16, 8),
                 dy = random(kSomeRows * columns), y = poisoned(kSomeRows * columns),
                 dgate_up = poisoned(2 * kSomeRows * columns);
    gpu().swiglu(gate_up.gpu, width, y.gpu);
    cpu().swiglu(gate_up.cpu, width, y.cpu);
    gpu().swiglu_gradient(gate_up.gpu, dy.gpu, width, dgate_up.gpu);
    cpu().swiglu_gradient(gate_up.cpu, dy.cpu, width, dgate_up.cpu);
    expect_equal(y, kRounding + kOrder);
    expect_equal(dgate_up, kRounding + kOrder);
  }
}

TEST_F(CudaMathRows, ViewsMayBeginAnywhere) {
  constexpr std::size_t kCount = 4000;
  const OnBoth a = random(kCount + 1), b = random(kCount + 1), sum = poisoned(kCount + 1),
               exact = poisoned(kCount + 1, NumberType::f32);
  const auto run = [&](TensorOps& math, auto of) {
    const auto odd = [&](const OnBoth& both) { return of(both).part(1, kCount); };
    math.add(odd(a), odd(b), odd(sum));
    math.copy(odd(sum), odd(exact));
    math.zero(of(sum).part(0, 1));
    math.zero(of(exact).part(0, 1));
  };
  run(gpu(), [](const OnBoth& both) { return both.gpu.view(); });
  run(cpu(), [](const OnBoth& both) { return both.cpu.view(); });
  expect_equal(sum, kRounding);
  expect_equal(exact, kRounding);
}

TEST_F(CudaMathRows, CrossEntropyOfLongAndOddRows) {
  for (const int vocabulary : {3, 1000, 8192, 8200, 20'011}) {
    SCOPED_TRACE(vocabulary);
    const OnBoth logits = random(4 * static_cast<std::size_t>(vocabulary), NumberType::bf16, 12),
                 targets = integers({vocabulary - 1, -1, 0, vocabulary / 2}),
                 loss = random(1, NumberType::f32);
    gpu().cross_entropy(targets.gpu, vocabulary, 0.25F, logits.gpu, loss.gpu);
    cpu().cross_entropy(targets.cpu, vocabulary, 0.25F, logits.cpu, loss.cpu);
    expect_equal(loss, kOrder);
    expect_equal(logits, kRounding + kOrder);
  }
}

TEST_F(CudaMathRows, EmbeddingAddsEachTokensPlaces) {
  constexpr int kVocabulary = 50;
  constexpr std::size_t kTokens = 700;  // over several blocks; most tokens many times
  std::vector<std::int32_t> text(kTokens);
  for (std::size_t i = 0; i < kTokens; ++i)
    text[i] = static_cast<std::int32_t>(i * i % kVocabulary);
  for (const int width : {8, 13, 2056}) {
    SCOPED_TRACE(width);
    const auto columns = static_cast<std::size_t>(width);
    const OnBoth tokens = integers(text), table = random(kVocabulary * columns),
                 y = poisoned(kTokens * columns), dy = random(kTokens * columns),
                 dtable = random(kVocabulary * columns, NumberType::f32);
    gpu().embed(tokens.gpu, table.gpu, width, y.gpu);
    cpu().embed(tokens.cpu, table.cpu, width, y.cpu);
    EXPECT_EQ(y.gpu.read(), y.cpu.read());
    gpu().embed_gradient(tokens.gpu, dy.gpu, width, dtable.gpu);
    cpu().embed_gradient(tokens.cpu, dy.cpu, width, dtable.cpu);
    expect_equal(dtable, kOrder);
  }
}

/// Weights are kept in bf16 beside a master in fp32: small steps must not be lost.
TEST_F(CudaMathRows, OptimizersStepTheMaster) {
  for (const std::size_t count : {1U, 4096U, 5001U}) {
    SCOPED_TRACE(count);
    const OnBoth gradient = random(count, NumberType::f32), master = random(count, NumberType::f32),
                 weights = poisoned(count), mean = random(count, NumberType::f32, 0.1F),
                 square = random(count, NumberType::f32, 0);
    AdamW options;
    for (options.step = 1; options.step <= 3; ++options.step) {
      gpu().adamw(options, gradient.gpu, mean.gpu, square.gpu, master.gpu, weights.gpu);
      cpu().adamw(options, gradient.cpu, mean.cpu, square.cpu, master.cpu, weights.cpu);
    }
    for (const OnBoth* const exact : {&mean, &square, &master}) expect_equal(*exact, kOrder);
    expect_equal(weights, kRounding);
    gpu().sgd(1e-4F, gradient.gpu, master.gpu, weights.gpu);
    cpu().sgd(1e-4F, gradient.cpu, master.cpu, weights.cpu);
    expect_equal(master, kOrder);
    expect_equal(weights, kRounding);
  }
}

}  // namespace
}  // namespace longhaul::nn
