#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "nn/cuda/tensor_ops_fixture.hpp"
#include "nn/layers/chunk.hpp"

/// A prompt as prefill computes it: through the stages of a pipeline, each with a stream of its
/// own, in passes of some tokens beside what is kept of those before. The reference is the whole
/// prompt at once on the CPU, with the same rounded weights.
namespace longhaul::nn {
namespace {

/// 4 decoders between embedding and head.
constexpr ModelShape kServed{1, 24, 64, 96, 4, 2, 56, 6};
constexpr AttentionShape kHeads{1, 24, 4, 2, 16};
constexpr std::uint64_t kSeedOfServed = 11;
constexpr auto kTokens = to_size(kServed.sequence), kHidden = to_size(kServed.hidden),
               kInner = to_size(kServed.intermediate);

/// Weights large enough that every term shows; norms stay 1.
void spread(TensorOps& math, const Chunk& chunk) {
  for (const Parameter& parameter : chunk.parameters()) {
    if (parameter.count == kHidden) continue;
    const std::uint64_t seed =
        std::accumulate(parameter.name.begin(), parameter.name.end(), std::uint64_t{1},
                        [](std::uint64_t sum, char letter) {
                          return 31 * sum + static_cast<unsigned char>(letter);
                        });
    math.fill_random(seed, 0.2F, parameter.weights);
  }
}

using Parameters = std::map<std::string, ArrayView>;

Parameters by_name(const Chunk& chunk) {
  Parameters found;
  for (const Parameter& parameter : chunk.parameters())
    found.emplace(parameter.name, parameter.weights);
  return found;
}

/// The last norm and the logits of one token.
naive::Numbers logits_of(TensorOps& math, const Parameters& weights, ArrayView row) {
  const NumberType type = math.working_type();
  const Tensor normed{math, kHidden, type}, inverse{math, 1, NumberType::f32},
      logits{math, to_size(kServed.vocabulary), type};
  math.rms_norm(row, weights.at("head.norm"), kServed.hidden, normed, inverse);
  math.gemm({1, kServed.vocabulary, kServed.hidden, false, true}, normed, weights.at("head.output"),
            logits);
  return logits.read();
}

/// Consecutive layers on a GPU, with queries, keys and values of the tokens so far (not turned).
class ServedStage {
public:
  ServedStage(int first, int count)
      : math{0}, memory_{math, 0}, chunk_{math,
                                          memory_,
                                          kServed,
                                          {first, count},
                                          Recompute::forward_only,
                                          kSeedOfServed} {
    spread(math, chunk_);
    weights = by_name(chunk_);
    for (int layer = first; layer < first + count; ++layer)
      if (layer > 0 && layer < kServed.layers - 1)
        kept_.emplace(layer, Tensor{math, kTokens * kHeads.width(), NumberType::bf16});
  }

  /// Tokens [before, before + count) through all layers of the stage but the head.
  [[nodiscard]] Tensor pass(const std::vector<std::int32_t>& text, const std::vector<float>& input,
                            std::size_t before, std::size_t count) {
    Tensor x{math, count * kHidden, NumberType::bf16};
    if (chunk_.holds_embedding()) {
      const Tensor tokens{math, count, NumberType::i32};
      math.copy_in(std::span{text}.subspan(before, count), tokens);
      math.embed(tokens, weights.at("embedding.table"), kServed.hidden, x);
    } else {
      x.write(input);
    }
    for (const auto& [layer, kept] : kept_) {
      attend(layer, kept, before, count, x);
      feed_forward(layer, count, x);
    }
    return x;
  }

  CudaTensorOps math;
  Parameters weights;

private:
  [[nodiscard]] ArrayView weight(int layer, const char* what) const {
    return weights.at(fmt::format("layer {} {}", layer, what));
  }
  [[nodiscard]] Tensor normed(ArrayView x, ArrayView weight, std::size_t count) {
    Tensor result{math, count * kHidden, NumberType::bf16};
    const Tensor inverse{math, count, NumberType::f32};
    math.rms_norm(x, weight, kServed.hidden, result, inverse);
    return result;
  }
  void attend(int layer, ArrayView kept, std::size_t before, std::size_t count, ArrayView x) {
    const std::size_t width = kHeads.width(), so_far = before + count;
    const int rows = static_cast<int>(count);
    const Tensor in = normed(x, weight(layer, "attention.norm"), count);
    math.gemm({rows, static_cast<int>(width), kServed.hidden, false, true}, in,
              weight(layer, "attention.qkv"), kept.part(before * width, count * width));
    const Tensor qkv{math, so_far * width, NumberType::bf16},
        out{math, so_far * kHidden, NumberType::bf16},
        sums{math, so_far * to_size(kHeads.heads), NumberType::f32};
    math.copy(kept.part(0, so_far * width), qkv);
    AttentionShape heads = kHeads;
    heads.sequence = static_cast<int>(so_far);
    math.rotary(heads, kServed.rotary_theta, Direction::forward, qkv);
    math.attention(heads, qkv, out, sums);
    math.gemm({rows, kServed.hidden, kServed.hidden, false, true, true},
              out.view().part(before * kHidden, count * kHidden), weight(layer, "attention.output"),
              x);
  }
  void feed_forward(int layer, std::size_t count, ArrayView x) {
    const int rows = static_cast<int>(count);
    const Tensor in = normed(x, weight(layer, "feedforward.norm"), count);
    const Tensor gate_up{math, count * 2 * kInner, NumberType::bf16},
        gated{math, count * kInner, NumberType::bf16};
    math.gemm({rows, 2 * kServed.intermediate, kServed.hidden, false, true}, in,
              weight(layer, "feedforward.gate_up"), gate_up);
    math.swiglu(gate_up, kServed.intermediate, gated);
    math.gemm({rows, kServed.hidden, kServed.intermediate, false, true, true}, gated,
              weight(layer, "feedforward.down"), x);
  }

  DeviceMemory memory_;
  Chunk chunk_;
  std::map<int, Tensor> kept_;
};

std::vector<std::int32_t> prompt_text() {
  std::vector<std::int32_t> text(kTokens);
  for (std::size_t i = 0; i < kTokens; ++i)
    text[i] = static_cast<std::int32_t>((7 * i * i + 3 * i + 1) % to_size(kServed.vocabulary));
  return text;
}

/// Outputs of the last decoder for all tokens, then the logits of the last token.
struct Prefilled {
  naive::Numbers hidden, logits;
};

Prefilled through_stages(const std::vector<int>& cuts, std::size_t at_once) {
  std::vector<std::unique_ptr<ServedStage>> stages;
  int first = 0;
  for (const int count : cuts) {
    stages.push_back(std::make_unique<ServedStage>(first, count));
    first += count;
  }
  Prefilled got;
  for (std::size_t before = 0; before < kTokens; before += at_once) {
    const std::size_t count = std::min(at_once, kTokens - before);
    std::vector<float> message;
    for (const auto& stage : stages) {
      const Tensor out = stage->pass(prompt_text(), message, before, count);
      message.resize(count * kHidden);
      stage->math.copy_out(out, message);
      if (stage != stages.back()) continue;
      got.hidden.insert(got.hidden.end(), message.begin(), message.end());
      if (before + count == kTokens)
        got.logits =
            logits_of(stage->math, stage->weights, out.view().part((count - 1) * kHidden, kHidden));
    }
  }
  return got;
}

Prefilled reference() {
  CudaTensorOps rounded{0};
  DeviceMemory on_gpu{rounded, 0};
  const Chunk source{rounded, on_gpu, kServed, {0, kServed.layers}, Recompute::off, kSeedOfServed};
  spread(rounded, source);
  const std::unique_ptr<TensorOps> cpu = make_cpu_math();
  DeviceMemory memory{*cpu, 0};
  const auto take_over = [&](const Chunk& chunk) {
    const Parameters numbers = by_name(source);
    for (const Parameter& parameter : chunk.parameters()) {
      std::vector<float> weights(parameter.count);
      rounded.copy_out(numbers.at(parameter.name), weights);
      cpu->copy_in(weights, parameter.weights);
    }
  };
  Chunk body{*cpu, memory, kServed, {0, kServed.layers - 1}, Recompute::off, kSeedOfServed};
  const Chunk head{*cpu, memory, kServed, {kServed.layers - 1, 1}, Recompute::off, kSeedOfServed};
  take_over(body);
  take_over(head);
  body.set_tokens(MicrobatchId{}, prompt_text());
  const Buffer out = body.forward(MicrobatchId{}, {}, {});
  std::vector<float> hidden(out.view().count);
  cpu->copy_out(out.view(), hidden);
  return {{hidden.begin(), hidden.end()},
          logits_of(*cpu, by_name(head), out.view().part((kTokens - 1) * kHidden, kHidden))};
}

TEST(CudaPrefill, OfEveryStageAndPassIsThatOfTheReference) {
  if (const std::string why = cuda::why_no_accelerator(); !why.empty()) GTEST_SKIP() << why;
  const Prefilled expected = reference();
  constexpr double kTolerance = 3e-2;  // rounding of a few layers in a row, as ChunkSuite has it
  const std::pair<std::vector<int>, std::size_t> ways[] = {
      {{6}, kTokens}, {{6}, 7}, {{3, 3}, kTokens}, {{3, 3}, 1}, {{3, 3}, 8}, {{2, 1, 1, 2}, 7}};
  for (const auto& [cuts, at_once] : ways) {
    SCOPED_TRACE(fmt::format("{} stages, {} tokens a pass", cuts.size(), at_once));
    const Prefilled got = through_stages(cuts, at_once);
    EXPECT_LE(naive::distance(got.hidden, expected.hidden), kTolerance);
    EXPECT_LE(naive::distance(got.logits, expected.logits), kTolerance);
  }
}

}  // namespace
}  // namespace longhaul::nn
