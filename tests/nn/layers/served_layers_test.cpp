#include "nn/layers/served_layers.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "nn/cpu/cpu_tensor_ops.hpp"

namespace longhaul::nn {
namespace {

/// 4 decoders between embedding and head.
constexpr ModelShape kShape{1, 24, 64, 96, 4, 2, 56, 6};
constexpr std::uint64_t kSeed = 11;
constexpr double kTolerance = 1e-5;

using Tokens = std::vector<std::int32_t>;

Tokens prompt_of(std::size_t tokens, std::size_t salt = 0) {
  Tokens text(tokens);
  for (std::size_t i = 0; i < tokens; ++i)
    text[i] = static_cast<std::int32_t>((7 * i * i + 3 * i + 11 * salt + 1) % 56);
  return text;
}

double distance(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

/// A pipeline of stages, each with an arithmetic of its own.
class Stages {
public:
  explicit Stages(const std::vector<int>& cuts) {
    int first = 0;
    for (const int count : cuts) {
      Stage& stage = stages_.emplace_back();
      stage.math = make_cpu_math();
      stage.memory = std::make_unique<DeviceMemory>(*stage.math, 0);
      stage.range = {first, count};
      stage.layers =
          std::make_unique<ServedLayers>(*stage.math, *stage.memory, kShape, stage.range, kSeed);
      first += count;
    }
  }
  void begin(std::int64_t prompt, std::size_t tokens) {
    for (const Stage& stage : stages_) stage.layers->begin(prompt, tokens);
  }
  /// Logits of each part's last token.
  std::vector<std::vector<float>> pass(const std::vector<PromptPart>& parts, const Tokens& tokens) {
    std::vector<float> rows;
    std::vector<std::vector<float>> logits;
    for (const Stage& stage : stages_) {
      ServedPass pass = stage.range.first == 0 ? stage.layers->read(parts, tokens)
                                               : stage.layers->take(parts, rows);
      for (int layer = stage.range.first; layer < stage.range.first + stage.range.count; ++layer)
        if (layer > 0 && layer < kShape.layers - 1) stage.layers->compute(pass, layer);
      rows = stage.layers->rows_of(pass);
      if (&stage != &stages_.back()) continue;
      for (std::size_t i = 0; i < parts.size(); ++i)
        logits.push_back(stage.layers->logits(pass, i));
    }
    rows_ = rows;
    return logits;
  }
  /// All of a prompt, so many tokens in a pass.
  std::vector<float> prefill(std::int64_t prompt, const Tokens& text, std::size_t at_once) {
    begin(prompt, text.size() + 16);
    std::vector<float> logits;
    for (std::size_t first = 0; first < text.size(); first += at_once) {
      const std::size_t count = std::min(at_once, text.size() - first);
      const auto from = text.begin() + static_cast<std::ptrdiff_t>(first);
      logits = pass({{prompt, count}}, {from, from + static_cast<std::ptrdiff_t>(count)})[0];
    }
    return logits;
  }
  ServedLayers& layers(std::size_t stage = 0) { return *stages_[stage].layers; }
  [[nodiscard]] const std::vector<float>& rows() const { return rows_; }

private:
  struct Stage {
    std::unique_ptr<TensorOps> math;
    std::unique_ptr<DeviceMemory> memory;
    LayerRange range;
    std::unique_ptr<ServedLayers> layers;
  };
  std::vector<Stage> stages_;
  std::vector<float> rows_;
};

/// The layers that train, with the same weights.
std::vector<float> rows_of_chunk(Stages& whole, const Tokens& text) {
  const auto math = make_cpu_math();
  DeviceMemory memory{*math, 0};
  ModelShape shape = kShape;
  shape.sequence = static_cast<int>(text.size());
  Chunk chunk{*math, memory, shape, {0, kShape.layers - 1}, Recompute::off, kSeed};
  for (const Parameter& parameter : chunk.parameters()) {
    const auto served =
        std::ranges::find(whole.layers().parameters(), parameter.name, &Parameter::name);
    math->copy(served->weights, parameter.weights);
  }
  chunk.set_tokens(MicrobatchId{}, text);
  const Buffer out = chunk.forward(MicrobatchId{}, {}, {});
  std::vector<float> rows(out.view().count);
  math->copy_out(out.view(), rows);
  return rows;
}

TEST(ServedLayers, MakeOfAPromptWhatLayersThatTrainDo) {
  Stages whole{{6}};
  const Tokens text = prompt_of(24);
  const std::vector<float> logits = whole.prefill(3, text, text.size());
  EXPECT_LE(distance(whole.rows(), rows_of_chunk(whole, text)), kTolerance);
  EXPECT_GT(std::ranges::max(logits) - std::ranges::min(logits), 1) << "logits that tell";
}

TEST(ServedLayers, GiveTheSameInPassesOfAnySizeOverAnyStages) {
  Stages whole{{6}};
  const Tokens text = prompt_of(24);
  const std::vector<float> expected = whole.prefill(0, text, text.size());
  for (const std::vector<int>& cuts : {std::vector{6}, {3, 3}, {2, 1, 1, 2}})
    for (const std::size_t at_once : {1UL, 5UL, 8UL, 24UL}) {
      SCOPED_TRACE(fmt::format("{} stages, {} tokens a pass", cuts.size(), at_once));
      Stages stages{cuts};
      EXPECT_LE(distance(stages.prefill(0, text, at_once), expected), kTolerance);
    }
}

TEST(ServedLayers, ComputeSeveralPromptsInOnePass) {
  Stages alone{{6}}, together{{3, 3}};
  const Tokens a = prompt_of(9, 1), b = prompt_of(14, 2);
  const std::vector<float> of_a = alone.prefill(1, a, 9), of_b = alone.prefill(2, b, 14);
  together.begin(1, 9);
  together.begin(2, 14);
  // The first 5 tokens of b beside all of a, then what is left of b.
  Tokens both = a;
  both.insert(both.end(), b.begin(), b.begin() + 5);
  const auto first = together.pass({{1, 9}, {2, 5}}, both);
  EXPECT_LE(distance(first.at(0), of_a), kTolerance);
  const auto rest = together.pass({{2, 9}}, {b.begin() + 5, b.end()});
  EXPECT_LE(distance(rest.at(0), of_b), kTolerance);
}

/// Tokens that follow a prompt, of which the first follows from `logits`.
Tokens decode(Stages& stages, std::int64_t prompt, std::vector<float> logits) {
  Tokens decoded;
  for (int i = 0; i < 8; ++i) {
    decoded.push_back(largest_of(logits));
    logits = stages.pass({{prompt, 1}}, {decoded.back()})[0];
  }
  return decoded;
}

std::vector<std::vector<float>> keys_of(Stages& stages, std::int64_t prompt, std::size_t tokens) {
  std::vector<std::vector<float>> keys;
  for (int layer = 1; layer < kShape.layers - 1; ++layer)
    keys.push_back(stages.layers().keys_and_values(prompt, layer, 0, tokens));
  return keys;
}

/// A model that holds of the prompt's tokens nothing but these.
std::vector<float> next_logits(const std::vector<std::vector<float>>& keys, std::int32_t token) {
  Stages other{{6}};
  other.begin(0, 40);
  for (int layer = 1; layer < kShape.layers - 1; ++layer)
    other.layers().put_keys_and_values(0, layer, keys[to_size(layer - 1)]);
  return other.pass({{0, 1}}, {token})[0];
}

TEST(ServedLayers, DecodeFromKeysAndValuesThatAnotherHasComputed) {
  Stages first{{6}}, second{{6}};
  const Tokens text = prompt_of(24);
  const std::vector<float> logits = first.prefill(0, text, 7);
  const auto keys = keys_of(first, 0, text.size());
  EXPECT_EQ(keys[0].size(), 24 * first.layers().kept_width());
  second.begin(0, 40);
  for (int layer = 1; layer < kShape.layers - 1; ++layer)
    second.layers().put_keys_and_values(0, layer, keys[to_size(layer - 1)]);
  EXPECT_EQ(decode(second, 0, logits), decode(first, 0, logits));
}

TEST(ServedLayers, ShowOneKeyThatIsAnother) {
  Stages whole{{6}};
  const Tokens text = prompt_of(24);
  const std::int32_t token = largest_of(whole.prefill(0, text, 24));
  auto keys = keys_of(whole, 0, text.size());
  const std::vector<float> expected = next_logits(keys, token);
  for (const std::size_t layer : {0UL, 3UL})
    for (const std::size_t number : {3UL, 24 * whole.layers().kept_width() - 1}) {
      auto wrong = keys;
      wrong[layer][number] += 1;
      EXPECT_GT(distance(next_logits(wrong, token), expected), 10 * kTolerance)
          << "layer " << layer << ", number " << number;
    }
}

TEST(ServedLayers, ShowAChunkThatWasDropped) {
  Stages whole{{6}}, dropped{{6}};
  const Tokens text = prompt_of(24);
  const std::vector<float> expected = whole.prefill(0, text, 8);
  dropped.begin(0, 24);
  static_cast<void>(dropped.pass({{0, 8}}, {text.begin(), text.begin() + 8}));
  const auto logits = dropped.pass({{0, 8}}, {text.begin() + 16, text.end()});
  EXPECT_GT(distance(logits[0], expected), 1e-2);
}

TEST(ServedLayersDeathTest, HaveNoRoomForMoreThanThePrompt) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  Stages whole{{6}};
  whole.begin(5, 3);
  EXPECT_DEATH(static_cast<void>(whole.pass({{5, 4}}, prompt_of(4))), "4 tokens of a prompt of 3");
  EXPECT_DEATH(static_cast<void>(whole.pass({{6, 4}}, prompt_of(4))),
               "layer 1 has no room for prompt 6");
}

}  // namespace
}  // namespace longhaul::nn
