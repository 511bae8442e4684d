#include "nn/layers/served_layers.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::nn {
namespace {

/// Times the weights that training begins with.
constexpr float kLarger = 6;

std::size_t tokens_of(const std::vector<PromptPart>& parts) {
  std::size_t tokens = 0;
  for (const PromptPart& part : parts) tokens += part.tokens;
  return tokens;
}

}  // namespace

ServedLayers::ServedLayers(TensorOps& math, DeviceMemory& memory, const ModelShape& shape,
                           LayerRange layers, std::uint64_t seed)
    : math_{math},
      memory_{memory},
      shape_{shape},
      layers_{layers},
      heads_{1, 1, shape.heads, shape.kv_heads, shape.head_size()},
      chunk_{math, memory, shape, layers, Recompute::forward_only, seed} {
  for (const Parameter& parameter : chunk_.parameters()) {
    weights_.emplace(parameter.name, parameter.weights);
    if (parameter.name.ends_with("norm")) continue;  // they stay 1
    std::vector<float> numbers(parameter.count);
    math.copy_out(parameter.weights, numbers);
    for (float& number : numbers) number *= kLarger;
    math.copy_in(numbers, parameter.weights);
  }
  math.finish();
}

std::size_t ServedLayers::kept_width() const {
  return 2 * to_size(heads_.kv_heads) * to_size(heads_.head_size);
}

ArrayView ServedLayers::weight(int layer, const char* what) const {
  return weights_.at(fmt::format("layer {} {}", layer, what));
}

void ServedLayers::begin(std::int64_t prompt, std::size_t tokens) {
  auto& of_layers = prompts_[prompt];
  LONGHAUL_ASSERT(of_layers.empty(), "prompt {} begins twice", prompt);
  for (int layer = layers_.first; layer < layers_.first + layers_.count; ++layer) {
    if (layer == 0 || layer == shape_.layers - 1) continue;
    Kept kept{memory_.take(tokens * heads_.width(), fmt::format("keys of prompt {}", prompt))};
    math_.zero(kept.rows.view());
    of_layers.emplace(layer, std::move(kept));
  }
}

void ServedLayers::forget(std::int64_t prompt) { prompts_.erase(prompt); }

ServedLayers::Kept& ServedLayers::kept_of(std::int64_t prompt, int layer) {
  const auto found = prompts_.find(prompt);
  LONGHAUL_ASSERT(found != prompts_.end() && found->second.contains(layer),
                  "layer {} has no room for prompt {}", layer, prompt);
  return found->second.at(layer);
}

ServedPass ServedLayers::read(std::vector<PromptPart> parts, std::span<const std::int32_t> tokens) {
  LONGHAUL_ASSERT(tokens.size() == tokens_of(parts) && chunk_.holds_embedding(),
                  "{} tokens of a pass of {}", tokens.size(), tokens_of(parts));
  const Buffer numbers = memory_.take(tokens.size(), NumberType::i32, "tokens of a prompt");
  math_.copy_in(tokens, numbers.view());
  Buffer rows = memory_.take(tokens.size() * to_size(shape_.hidden), "a prompt's tokens");
  math_.embed(numbers.view(), weights_.at("embedding.table"), shape_.hidden, rows.view());
  return {std::move(parts), std::move(rows)};
}

ServedPass ServedLayers::take(std::vector<PromptPart> parts, std::span<const float> rows) {
  LONGHAUL_ASSERT(rows.size() == tokens_of(parts) * to_size(shape_.hidden),
                  "{} numbers of a pass of {} tokens", rows.size(), tokens_of(parts));
  Buffer own = memory_.take(rows.size(), "a prompt's rows");
  math_.copy_in(rows, own.view());
  return {std::move(parts), std::move(own)};
}

void ServedLayers::compute(ServedPass& pass, int layer) {
  attend(pass, layer);
  feed_forward(pass, layer);
  math_.finish();
}

Buffer ServedLayers::normed(ArrayView rows, ArrayView weight, std::size_t count) {
  Buffer result = memory_.take(rows.count, "a prompt's normed rows");
  const Buffer inverse = memory_.take(count, NumberType::f32, "inverse root mean squares");
  math_.rms_norm(rows, weight, shape_.hidden, result.view(), inverse.view());
  return result;
}

void ServedLayers::attend(ServedPass& pass, int layer) {
  const std::size_t tokens = tokens_of(pass.parts), width = heads_.width(),
                    hidden = to_size(shape_.hidden);
  const int rows = static_cast<int>(tokens);
  const Buffer in = normed(pass.rows.view(), weight(layer, "attention.norm"), tokens);
  const Buffer fresh = memory_.take(tokens * width, "queries, keys and values");
  math_.gemm({rows, static_cast<int>(width), shape_.hidden, false, true}, in.view(),
             weight(layer, "attention.qkv"), fresh.view());
  const Buffer attended = memory_.take(tokens * hidden, "attention");
  std::size_t first = 0;
  for (const PromptPart& part : pass.parts) {
    attend_part(kept_of(part.prompt, layer), fresh.view().part(first * width, part.tokens * width),
                part.tokens, attended.view().part(first * hidden, part.tokens * hidden));
    first += part.tokens;
  }
  math_.gemm({rows, shape_.hidden, shape_.hidden, false, true, true}, attended.view(),
             weight(layer, "attention.output"), pass.rows.view());
}

/// All tokens so far, of which the last `count` are `fresh`, as one sequence.
void ServedLayers::attend_part(Kept& kept, ArrayView fresh, std::size_t count, ArrayView attended) {
  const std::size_t width = heads_.width(), hidden = to_size(shape_.hidden),
                    so_far = kept.tokens + count;
  LONGHAUL_ASSERT(so_far * width <= kept.rows.view().count, "{} tokens of a prompt of {}", so_far,
                  kept.rows.view().count / width);
  math_.copy(fresh, kept.rows.view().part(kept.tokens * width, count * width));
  const Buffer turned = memory_.take(so_far * width, "turned queries, keys and values"),
               out = memory_.take(so_far * hidden, "attention of all tokens so far"),
               sums = memory_.take(so_far * to_size(heads_.heads), NumberType::f32,
                                   "attention's sums");
  math_.copy(kept.rows.view().part(0, so_far * width), turned.view());
  AttentionShape heads = heads_;
  heads.sequence = static_cast<int>(so_far);
  math_.rotary(heads, shape_.rotary_theta, Direction::forward, turned.view());
  math_.attention(heads, turned.view(), out.view(), sums.view());
  math_.copy(out.view().part(kept.tokens * hidden, count * hidden), attended);
  kept.tokens = so_far;
}

void ServedLayers::feed_forward(ServedPass& pass, int layer) {
  const std::size_t tokens = tokens_of(pass.parts), inner = to_size(shape_.intermediate);
  const int rows = static_cast<int>(tokens);
  const Buffer in = normed(pass.rows.view(), weight(layer, "feedforward.norm"), tokens);
  const Buffer gate_up = memory_.take(tokens * 2 * inner, "gate and up"),
               gated = memory_.take(tokens * inner, "gated");
  math_.gemm({rows, 2 * shape_.intermediate, shape_.hidden, false, true}, in.view(),
             weight(layer, "feedforward.gate_up"), gate_up.view());
  math_.swiglu(gate_up.view(), shape_.intermediate, gated.view());
  math_.gemm({rows, shape_.hidden, shape_.intermediate, false, true, true}, gated.view(),
             weight(layer, "feedforward.down"), pass.rows.view());
}

std::vector<float> ServedLayers::rows_of(const ServedPass& pass) {
  std::vector<float> numbers(pass.rows.view().count);
  math_.copy_out(pass.rows.view(), numbers);
  return numbers;
}

std::vector<float> ServedLayers::logits(const ServedPass& pass, std::size_t part) {
  const std::size_t hidden = to_size(shape_.hidden);
  std::size_t last = 0;
  for (std::size_t i = 0; i <= part; ++i) last += pass.parts[i].tokens;
  const Buffer in =
      normed(pass.rows.view().part((last - 1) * hidden, hidden), weights_.at("head.norm"), 1);
  const Buffer out = memory_.take(to_size(shape_.vocabulary), "logits");
  math_.gemm({1, shape_.vocabulary, shape_.hidden, false, true}, in.view(),
             weights_.at("head.output"), out.view());
  std::vector<float> numbers(to_size(shape_.vocabulary));
  math_.copy_out(out.view(), numbers);
  return numbers;
}

std::vector<float> ServedLayers::keys_and_values(std::int64_t prompt, int layer, std::size_t first,
                                                 std::size_t count) {
  const Kept& kept = kept_of(prompt, layer);
  LONGHAUL_ASSERT(first + count <= kept.tokens, "tokens {} to {} of {}", first, first + count,
                  kept.tokens);
  const std::size_t width = heads_.width();
  std::vector<float> rows(count * width), numbers;
  math_.copy_out(kept.rows.view().part(first * width, count * width), rows);
  numbers.reserve(count * kept_width());
  for (auto row = rows.begin(); row != rows.end(); row += static_cast<std::ptrdiff_t>(width))
    numbers.insert(numbers.end(), row + static_cast<std::ptrdiff_t>(width - kept_width()),
                   row + static_cast<std::ptrdiff_t>(width));
  return numbers;
}

void ServedLayers::put_keys_and_values(std::int64_t prompt, int layer,
                                       std::span<const float> numbers) {
  Kept& kept = kept_of(prompt, layer);
  const std::size_t width = heads_.width(), own = kept_width(), tokens = numbers.size() / own;
  LONGHAUL_ASSERT(kept.tokens == 0 && tokens * width <= kept.rows.view().count,
                  "{} tokens of a prompt of {}", tokens, kept.rows.view().count / width);
  std::vector<float> rows(tokens * width, 0.0F);
  for (std::size_t token = 0; token < tokens; ++token)
    std::ranges::copy(numbers.subspan(token * own, own),
                      rows.begin() + static_cast<std::ptrdiff_t>((token + 1) * width - own));
  math_.copy_in(rows, kept.rows.view().part(0, rows.size()));
  kept.tokens = tokens;
}

std::int32_t largest_of(std::span<const float> numbers) {
  return static_cast<std::int32_t>(std::ranges::max_element(numbers) - numbers.begin());
}

}  // namespace longhaul::nn
