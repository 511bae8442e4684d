#include "nn/layers/chunk.hpp"

#include <limits>
#include <utility>

#include "base/index.hpp"
#include "nn/layers/chunk_parts.hpp"

namespace longhaul::nn {

Chunk::Chunk(TensorOps& math, DeviceMemory& memory, const ModelShape& shape, LayerRange layers,
             Recompute recompute, std::uint64_t seed)
    : parts_{std::make_unique<Parts>(math, memory, shape, layers, recompute, seed)} {}

Chunk::~Chunk() = default;

bool Chunk::holds_embedding() const { return parts_->range.first == 0; }

bool Chunk::holds_head() const {
  return parts_->range.first + parts_->range.count == parts_->shape.layers;
}

void Chunk::set_tokens(MicrobatchId microbatch, std::span<const std::int32_t> tokens) {
  LONGHAUL_ASSERT(holds_embedding(), "layers from {} on", parts_->range.first);
  parts_->set(&InFlight::tokens, microbatch, tokens, 0);
}

void Chunk::set_targets(MicrobatchId microbatch, std::span<const std::int32_t> targets) {
  LONGHAUL_ASSERT(holds_head(), "{} layers from {} on", parts_->range.count, parts_->range.first);
  parts_->set(&InFlight::targets, microbatch, targets, std::numeric_limits<std::int32_t>::min());
}

Buffer Chunk::forward(MicrobatchId microbatch, BlockPart part, Buffer input) {
  InFlight& data = parts_->microbatches[microbatch];
  const int first = parts_->begin(part, data.forwarded, "F", microbatch);
  if (part.is_first()) {
    LONGHAUL_ASSERT(input.view().count == (holds_embedding() ? 0 : parts_->shape.boundary()) &&
                        (!holds_embedding() || data.tokens) && (!holds_head() || data.targets),
                    "F(microbatch {}) of {} numbers", microbatch, input.view().count);
    data.passing = std::move(input);
  }
  data.forwarded = parts_->end(part);
  parts_->forward_layers(parts_->work("F", microbatch, data), data, first, data.forwarded,
                         Pass::forward);
  if (!part.is_last()) return {};
  if (parts_->recompute == Recompute::off) data.targets = {};
  Buffer output = std::move(data.passing);
  if (parts_->recompute == Recompute::forward_only) parts_->microbatches.erase(microbatch);
  return output;
}

void Chunk::recompute(MicrobatchId microbatch, BlockPart part) {
  InFlight& data = parts_->in_flight_at("R", microbatch);
  const int first = parts_->begin(part, data.remade, "R", microbatch);
  LONGHAUL_ASSERT(parts_->recompute == Recompute::on && data.forwarded == parts_->count(),
                  "R(microbatch {}) with {} layers forwarded", microbatch, data.forwarded);
  if (part.is_first()) data.passing = std::move(data.input);
  data.remade = parts_->end(part);
  parts_->forward_layers(parts_->work("R", microbatch, data), data, first, data.remade,
                         Pass::recompute);
  if (part.is_last()) data.targets = {};
}

Buffer Chunk::backward_input(MicrobatchId microbatch, BlockPart part, Buffer gradient) {
  InFlight& data = parts_->in_flight_at("D", microbatch);
  const int done = parts_->begin_backward("D", data, microbatch, part, std::move(gradient));
  data.passed_back = parts_->end(part);
  const BlockContext work = parts_->work("D", microbatch, data);
  for (int i = done; i < data.passed_back; ++i) {
    data.passing = parts_->from_the_end(i).input_gradient(work, std::move(data.passing));
  }
  return part.is_last() ? std::move(data.passing) : Buffer{};
}

void Chunk::backward_weight(MicrobatchId microbatch, BlockPart part) {
  InFlight& data = parts_->in_flight_at("W", microbatch);
  const int done = parts_->begin(part, data.weighed, "W", microbatch);
  data.weighed = parts_->end(part);
  LONGHAUL_ASSERT(data.weighed <= data.passed_back, "W(microbatch {}) of {} layers, D of {}",
                  microbatch, data.weighed, data.passed_back);
  const BlockContext work = parts_->work("W", microbatch, data);
  for (int i = done; i < data.weighed; ++i) parts_->from_the_end(i).weight_gradient(work);
  if (data.weighed == parts_->count()) parts_->microbatches.erase(microbatch);
}

Buffer Chunk::backward(MicrobatchId microbatch, BlockPart part, Buffer gradient) {
  InFlight& data = parts_->in_flight_at("B", microbatch);
  const int done = parts_->begin_backward("B", data, microbatch, part, std::move(gradient));
  data.passed_back = data.weighed = parts_->end(part);
  const BlockContext work = parts_->work("B", microbatch, data);
  for (int i = done; i < data.passed_back; ++i) {
    data.passing = parts_->from_the_end(i).input_gradient(work, std::move(data.passing));
    parts_->from_the_end(i).weight_gradient(work);
  }
  if (!part.is_last()) return {};
  Buffer passed = std::move(data.passing);
  parts_->microbatches.erase(microbatch);
  return passed;
}

void Chunk::drop(MicrobatchId microbatch) {
  LONGHAUL_ASSERT(parts_->recompute == Recompute::off, "microbatch {} was forgotten", microbatch);
  (void)parts_->in_flight_at("drop", microbatch);  // asserts that there is one
  for (const auto& layer : parts_->layers) (void)layer->forget(microbatch);
  parts_->microbatches.erase(microbatch);
}

void Chunk::set_loss_scale(float scale) { parts_->loss_scale = scale; }

float Chunk::loss() {
  float sum = 0;
  parts_->math.copy_out(parts_->losses.view().part(0, 1), {&sum, 1});
  return sum;
}

void Chunk::set_batch(int sequences) {
  LONGHAUL_ASSERT(in_flight() == 0 && sequences > 0, "{} microbatches are in flight, then of {}",
                  in_flight(), sequences);
  parts_->shape.batch = sequences;
  for (const auto& layer : parts_->layers) layer->set_batch(sequences);
}

void Chunk::begin_iteration() {
  LONGHAUL_ASSERT(in_flight() == 0, "{} microbatches are in flight", in_flight());
  if (parts_->recompute != Recompute::forward_only) parts_->math.zero(all_gradients());
  parts_->math.zero(parts_->losses.view());
}

std::span<const Parameter> Chunk::parameters() const { return parts_->weights.parameters(); }
ArrayView Chunk::all_weights() const { return parts_->weights.weights(); }
ArrayView Chunk::all_gradients() const { return parts_->weights.gradients(); }
ArrayView Chunk::all_masters() const { return parts_->weights.masters(); }
NumberRange Chunk::weights_of(BlockPart part) const {
  const auto first_of = [&](int layer) {
    std::size_t parameters = 0;
    for (int i = 0; i < layer; ++i) parameters += parts_->layers[at(i)]->needs().size();
    if (parameters == this->parameters().size()) return all_weights().count;
    const std::byte* const begin = this->parameters()[parameters].weights.data;
    return static_cast<std::size_t>(begin - all_weights().data) / bytes_of(all_weights().type);
  };
  const std::size_t first = first_of(part.part * parts_->count() / part.parts);
  return {first, first_of((part.part + 1) * parts_->count() / part.parts) - first};
}

int Chunk::in_flight() const { return static_cast<int>(parts_->microbatches.size()); }

}  // namespace longhaul::nn
