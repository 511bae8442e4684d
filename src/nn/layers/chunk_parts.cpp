#include "nn/layers/chunk_parts.hpp"

#include <utility>

#include "base/index.hpp"
#include "nn/layers/layer.hpp"

namespace longhaul::nn {

Buffer BlockContext::take(std::size_t count, NumberType type, int layer, const char* what) const
    try {
  return memory.take(count, type, what);
} catch (const Error& error) {
  throw Error{
      fmt::format("{}(microbatch {}), layer {}, {}", block, microbatch, layer, error.what()),
      error.code()};
}

namespace {

std::vector<std::unique_ptr<Layer>> make_layers(const ModelShape& shape, LayerRange layers) {
  std::vector<std::unique_ptr<Layer>> made;
  for (int i = layers.first; i < layers.first + layers.count; ++i) {
    if (i == 0) {
      made.push_back(make_embedding(shape));
    } else if (i == shape.layers - 1) {
      made.push_back(make_head(shape));
    } else {
      made.push_back(make_decoder(shape, i));
    }
  }
  return made;
}

const ModelShape& checked(const ModelShape& shape, LayerRange layers) {
  check_layers(shape, layers);
  return shape;
}

}  // namespace

ParameterPlaces parameter_places(const ModelShape& shape, LayerRange layers) {
  return places_of(make_layers(checked(shape, layers), layers));
}

Chunk::Parts::Parts(TensorOps& on, DeviceMemory& from, const ModelShape& model, LayerRange holds,
                    Recompute how, std::uint64_t seed)
    : math{on},
      memory{from},
      shape{checked(model, holds)},
      range{holds},
      recompute{how},
      layers{make_layers(shape, range)},
      weights{math, memory, layers, seed, how == Recompute::forward_only},
      losses{memory.take(2, NumberType::f32, "loss")} {
  math.zero(losses.view());
}

int Chunk::Parts::begin(BlockPart part, int done, std::string_view block,
                        MicrobatchId microbatch) const {
  LONGHAUL_ASSERT(part.part >= 0 && part.part < part.parts && done == done_before(part),
                  "{}(microbatch {}), part {} of {}: {} of {} layers are done", block, microbatch,
                  part.part, part.parts, done, count());
  return done;
}

InFlight& Chunk::Parts::in_flight_at(std::string_view block, MicrobatchId microbatch) {
  const auto found = microbatches.find(microbatch);
  LONGHAUL_ASSERT(found != microbatches.end(), "{}(microbatch {}): there is none", block,
                  microbatch);
  return found->second;
}

void Chunk::Parts::set(Buffer InFlight::*which, MicrobatchId microbatch,
                       std::span<const std::int32_t> numbers, std::int32_t lowest) {
  LONGHAUL_ASSERT(numbers.size() == shape.tokens(), "{} tokens of {}", numbers.size(),
                  shape.tokens());
  for (const std::int32_t number : numbers) {
    LONGHAUL_ASSERT(number >= lowest && number < shape.vocabulary, "token {} of {}", number,
                    shape.vocabulary);
  }
  Buffer buffer = memory.take(numbers.size(), NumberType::i32,
                              fmt::format("tokens of microbatch {}", microbatch));
  math.copy_in(numbers, buffer.view());
  microbatches[microbatch].*which = std::move(buffer);
}

void Chunk::Parts::forward_layers(const BlockContext& work, InFlight& data, int first, int past,
                                  Pass pass) {
  for (int i = first; i < past; ++i) {
    Layer& layer = *layers[at(i)];
    const bool wanted = pass == Pass::forward || i + 1 < count();
    data.passing =
        layer.forward(work, std::move(data.passing), wanted ? Output::make : Output::leave);
    if (pass == Pass::forward && recompute != Recompute::off) {
      Buffer input = layer.forget(work.microbatch);
      if (i == 0 && recompute == Recompute::on) data.input = std::move(input);
    }
  }
}

int Chunk::Parts::begin_backward(std::string_view block, InFlight& data, MicrobatchId microbatch,
                                 BlockPart part, Buffer gradient) const {
  const int done = begin(part, data.passed_back, block, microbatch);
  const int ready = recompute == Recompute::on ? data.remade : data.forwarded;
  LONGHAUL_ASSERT(ready == count(), "{}(microbatch {}) after {} of {} layers", block, microbatch,
                  ready, count());
  if (part.is_first()) {
    const bool ends = range.first + count() == shape.layers;
    LONGHAUL_ASSERT(gradient.view().count == (ends ? 0 : shape.boundary()),
                    "{}(microbatch {}) of {} numbers", block, microbatch, gradient.view().count);
    data.passing = std::move(gradient);
  }
  return done;
}

}  // namespace longhaul::nn
