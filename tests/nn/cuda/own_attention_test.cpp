#include "nn/cuda/tensor_ops_fixture.hpp"

/// Our own attention in blocks of queries, and the check that a library's has to pass.
namespace longhaul::nn {
namespace {

/// The members that an attention needs, without a CudaTensorOps around it.
struct Device {
  cuda::Stream stream{};
  StreamMemoryPool pool{0, stream.get()};
  Gemms gemms{0, stream.get(), pool, GemmChoice::first};
  OwnAttention whole{stream.get(), pool, gemms};
};

class CudaMathAttention : public CudaMathTest {
protected:
  void SetUp() override {
    CudaMathTest::SetUp();
    if (!IsSkipped()) device_ = std::make_unique<Device>();
  }
  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] double disagreement(const AttentionShape& shape, Attention& other) {
    return nn::disagreement(device().stream.get(), device().pool, shape, other, device().whole);
  }

private:
  std::unique_ptr<Device> device_;
};

/// batch, sequence, heads, kv_heads, head_size
constexpr AttentionShape kShapes[] = {{1, 1, 1, 1, 8}, {2, 50, 4, 2, 16}, {1, 77, 3, 1, 10}};

TEST_F(CudaMathAttention, BlocksGiveWhatTheWholeGives) {
  for (const AttentionShape& shape : kShapes)
    for (const int queries : {16, 33}) {
      SCOPED_TRACE(::testing::Message() << shape.sequence << " in " << queries);
      OwnAttention blocks{device().stream.get(), device().pool, device().gemms, queries};
      EXPECT_LE(disagreement(shape, blocks), kRounding);
    }
}

TEST_F(CudaMathAttention, IsTheTwins) {
  for (const AttentionShape& shape : kShapes) {
    SCOPED_TRACE(shape.sequence);
    const std::size_t sums = shape.tokens() * static_cast<std::size_t>(shape.heads);
    const std::size_t numbers = sums * static_cast<std::size_t>(shape.head_size);
    const OnBoth qkv = random(shape.tokens() * shape.width(), NumberType::bf16, 2),
                 dout = random(numbers), out = poisoned(numbers),
                 log_sums = poisoned(sums, NumberType::f32),
                 dqkv = poisoned(shape.tokens() * shape.width());
    const auto run = [&](TensorOps& math, auto of) {
      math.attention(shape, of(qkv), of(out), of(log_sums));
      math.attention_gradient(shape, of(qkv), of(out), of(log_sums), of(dout), of(dqkv));
    };
    run(gpu(), [](const OnBoth& both) { return both.gpu.view(); });
    run(cpu(), [](const OnBoth& both) { return both.cpu.view(); });
    expect_equal(log_sums, kOrder);
    expect_equal(out, 2 * kRounding);   // the weights, and the output
    expect_equal(dqkv, 4 * kRounding);  // outputs, weights, gradients of scores, and the result
  }
}

/// Does what ours does, but for one mistake.
class Mistaken final : public Attention {
public:
  enum class Mistake { none, nothing_written, one_sequence, no_gradient };
  Mistaken(Attention& right, Mistake mistake) : right_{right}, mistake_{mistake} {}
  [[nodiscard]] bool takes(const AttentionShape&) override { return true; }
  void forward(const AttentionShape& shape, ArrayView qkv, ArrayView out,
               ArrayView log_sums) override {
    if (mistake_ != Mistake::nothing_written) right_.forward(seen(shape), qkv, out, log_sums);
  }
  void backward(const AttentionShape& shape, ArrayView qkv, ArrayView out, ArrayView log_sums,
                ArrayView dout, ArrayView dqkv) override {
    if (mistake_ != Mistake::no_gradient)
      right_.backward(seen(shape), qkv, out, log_sums, dout, dqkv);
  }

private:
  [[nodiscard]] AttentionShape seen(AttentionShape shape) const {
    if (mistake_ == Mistake::one_sequence) {
      shape.sequence *= shape.batch;
      shape.batch = 1;
    }
    return shape;
  }
  Attention& right_;
  Mistake mistake_;
};

TEST_F(CudaMathAttention, TheCheckSeesMistakes) {
  using Mistake = Mistaken::Mistake;
  constexpr AttentionShape kShape{2, 24, 2, 1, 16};
  Mistaken right{device().whole, Mistake::none};
  EXPECT_LE(disagreement(kShape, right), 1e-9);
  for (const Mistake mistake :
       {Mistake::nothing_written, Mistake::no_gradient, Mistake::one_sequence}) {
    Mistaken wrong{device().whole, mistake};
    EXPECT_GT(disagreement(kShape, wrong), 0.1) << static_cast<int>(mistake);
  }
}

TEST_F(CudaMathAttention, SaysWhoseItIs) {
  EXPECT_TRUE(gpu().attention_name().starts_with("own (") ||
              gpu().attention_name().starts_with("cuDNN "))
      << gpu().attention_name();
  const CudaTensorOps chosen{0, {GemmChoice::timed, AttentionChoice::own}};
  EXPECT_EQ(chosen.attention_name(), "own (chosen)");
}

}  // namespace
}  // namespace longhaul::nn
