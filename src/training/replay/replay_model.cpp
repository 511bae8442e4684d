#include "training/replay/replay_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "training/replay/replay_choice.hpp"
#include "training/replay/replay_set.hpp"

namespace longhaul::training {

ReplayModel::ReplayModel(nn::TensorOps& math, nn::DeviceMemory& memory, const nn::ModelShape& shape,
                         const ReplayCuts& cuts, std::uint64_t seed)
    : math_{math}, travels_{cuts.travels} {
  std::vector<int> ends = cuts.after;
  ends.push_back(shape.layers);
  int first = 0;
  for (const int end : ends) {
    if (end <= first || end > shape.layers)
      fail("a pipeline of {} layers is cut after {} and then {}. Let each stage have layers.",
           shape.layers, first, end);
    chunks_.push_back(std::make_unique<nn::Chunk>(
        math, memory, shape, nn::LayerRange{first, end - first}, nn::Recompute::off, seed));
    numbers_ += chunks_.back()->all_weights().count;
    first = end;
  }
}

void ReplayModel::set_loss_scale(float scale) {
  for (const auto& chunk : chunks_) chunk->set_loss_scale(scale);
}

void ReplayModel::set_batch(int sequences) {
  for (const auto& chunk : chunks_) chunk->set_batch(sequences);
}

void ReplayModel::begin_iteration() {
  for (const auto& chunk : chunks_) chunk->begin_iteration();
}

void ReplayModel::zero_gradients() {
  for (const auto& chunk : chunks_) math_.zero(chunk->all_gradients());
}

template <typename Numbers, typename Work>
void ReplayModel::for_stretches(std::span<Numbers> numbers, Work&& work) const {
  LONGHAUL_ASSERT(numbers.size() == numbers_, "{} and {}", numbers.size(), numbers_);
  std::size_t begin = 0;
  for (const auto& chunk : chunks_) {
    const std::size_t count = chunk->all_weights().count;
    work(*chunk, numbers.subspan(begin, count));
    begin += count;
  }
}

void ReplayModel::set_weights(std::span<const float> weights) {
  for_stretches(weights, [&](nn::Chunk& chunk, std::span<const float> own) {
    math_.copy_in(own, chunk.all_masters());
    if (chunk.all_masters().data != chunk.all_weights().data)
      math_.copy(chunk.all_masters(), chunk.all_weights());
  });
}

void ReplayModel::copy_weights(std::span<float> to) const {
  for_stretches(to, [&](nn::Chunk& chunk, std::span<float> own) {
    math_.copy_out(chunk.all_masters(), own);
  });
}

void ReplayModel::copy_gradients(std::span<float> to) const {
  for_stretches(to, [&](nn::Chunk& chunk, std::span<float> own) {
    math_.copy_out(chunk.all_gradients(), own);
  });
}

void ReplayModel::run(MicrobatchId microbatch, const nn::MicrobatchText& text) {
  chunks_.front()->set_tokens(microbatch, text.tokens);
  chunks_.back()->set_targets(microbatch, text.targets);
  nn::Buffer travels;
  int message = 0;
  for (const auto& chunk : chunks_) {
    travels = chunk->forward(microbatch, {}, std::move(travels));
    send(travels, message++, microbatch);
  }
  for (auto chunk = chunks_.rbegin(); chunk != chunks_.rend(); ++chunk) {
    travels = (*chunk)->backward(microbatch, {}, std::move(travels));
    send(travels, message++, microbatch);
  }
}

/// It becomes what a receiver has of it. There is none at both ends of the model.
void ReplayModel::send(const nn::Buffer& travels, int message, MicrobatchId microbatch) {
  if (!travels || travels_.format == ActivationFormat::f32) return;
  std::vector<float> numbers(travels.view().count);
  math_.copy_out(travels.view(), numbers);
  for (const float number : numbers)
    if (!std::isfinite(number))
      fail("a number between two stages is {} (no finite number). Take a smaller learning rate.",
           number);
  const ActivationFeedback feedback =
      travels_.format == ActivationFormat::topk ? travels_.feedback : ActivationFeedback::none;
  std::vector<float> kept(numbers.size());
  if (feedback != ActivationFeedback::none) {
    kept = memory_[{message, microbatch}];
    kept.resize(numbers.size());
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (feedback == ActivationFeedback::residual) numbers[i] = kept[i] + numbers[i];
    if (feedback == ActivationFeedback::difference) numbers[i] = numbers[i] - kept[i];
  }
  const std::vector<float> asked = numbers;
  code(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (feedback == ActivationFeedback::residual) kept[i] = asked[i] - numbers[i];
    if (feedback == ActivationFeedback::difference) numbers[i] = kept[i] += numbers[i];
  }
  if (feedback != ActivationFeedback::none) memory_[{message, microbatch}] = kept;
  math_.copy_in(numbers, travels.view());
}

/// Of `topk` the largest numbers are left, of equal ones the first.
void ReplayModel::code(std::span<float> numbers) const {
  if (travels_.format == ActivationFormat::bf16) return round_kept(numbers, SetValues::bf16);
  if (travels_.format == ActivationFormat::int8) return round_kept(numbers, SetValues::int8);
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return std::abs(numbers[a]) > std::abs(numbers[b]);
  });
  const std::size_t most = replayed_blocks(numbers.size(), travels_.keep, 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    float& number = numbers[order[i]];
    number = i < most ? rounded_to(kBrain, number) : 0;
  }
}

}  // namespace longhaul::training
