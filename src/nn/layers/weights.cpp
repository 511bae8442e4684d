#include "nn/layers/weights.hpp"

#include "base/random.hpp"

namespace longhaul::nn {

namespace {

constexpr std::size_t kWeightAlignment = 64;

std::size_t aligned(std::size_t count) {
  return (count + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

/// FNV-1a: a name's number, the same everywhere.
std::uint64_t number_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

Weights::Weights(TensorOps& math, DeviceMemory& memory,
                 std::span<const std::unique_ptr<Layer>> layers, std::uint64_t seed,
                 bool forward_only) {
  const std::size_t count = places_of(layers).numbers;
  weights_ = memory.take(count, "weights");
  math.zero(weights_.view());
  if (!forward_only) {
    gradients_ = memory.take(count, NumberType::f32, "gradients of weights");
    math.zero(gradients_.view());
    if (math.working_type() != NumberType::f32) {
      masters_ = memory.take(count, NumberType::f32, "master weights");
      math.zero(masters_.view());
    }
  }
  std::size_t first = 0;
  for (const auto& layer : layers) {
    const std::size_t before = parameters_.size();
    for (const ParameterNeed& need : layer->needs()) {
      make(math, memory, need, first, seed);
      first += aligned(need.count);
    }
    layer->bind(std::span{parameters_}.subspan(before));
  }
  if (masters_) math.copy(masters_.view(), weights_.view());
}

void Weights::make(TensorOps& math, DeviceMemory& memory, const ParameterNeed& need,
                   std::size_t first, std::uint64_t seed) {
  const auto part = [&](ArrayView all) {
    return all.count == 0 ? all : all.part(first, need.count);
  };
  const Parameter& made = parameters_.emplace_back(Parameter{
      need.name, need.count, part(weights_.view()), part(gradients_.view()), part(masters())});
  Buffer apart;  // where there is no master
  ArrayView numbers = made.master;
  if (numbers.count == 0) {
    apart = memory.take(need.count, NumberType::f32, "weights before they are rounded");
    numbers = apart.view();
  }
  if (need.bound > 0)
    math.fill_random(derived_seed(seed, number_of(need.name)), need.bound, numbers);
  else
    math.copy_in(std::vector<float>(need.count, 1.0F), numbers);
  if (apart) math.copy(numbers, made.weights);
}

ParameterPlaces places_of(std::span<const std::unique_ptr<Layer>> layers) {
  ParameterPlaces all;
  for (const auto& layer : layers)
    for (const ParameterNeed& need : layer->needs()) {
      const std::size_t columns = need.rows == 0 ? 1 : need.count / need.rows;
      all.places.push_back({need.name, all.numbers, need.count / columns, columns});
      all.numbers += aligned(need.count);
    }
  return all;
}

void check_layers(const ModelShape& shape, LayerRange layers) {
  for (const auto& [number, name] : {std::pair{shape.batch, "microbatch size"},
                                     {shape.sequence, "sequence length"},
                                     {shape.hidden, "hidden size"},
                                     {shape.intermediate, "intermediate size"},
                                     {shape.heads, "number of heads"},
                                     {shape.kv_heads, "number of key and value heads"},
                                     {shape.vocabulary, "vocabulary"}}) {
    if (number < 1) fail("the model's {} is {} (it counts from 1). Give one.", name, number);
  }
  if (shape.layers < 2) {
    fail("the model has {} layers (embedding and output head are one each). Give 2 or more.",
         shape.layers);
  }
  if (layers.count < 1) {
    fail(
        "a chunk holds {} layers (each must hold one at least). Take fewer stages or chunks, or "
        "more layers.",
        layers.count);
  }
  if (layers.first < 0 || layers.first + layers.count > shape.layers) {
    fail("a chunk holds layers {} to {} (the model has 0 to {}). Let layers add up.", layers.first,
         layers.first + layers.count - 1, shape.layers - 1);
  }
  if (shape.hidden % shape.heads != 0 || shape.head_size() % 2 != 0) {
    fail("{} heads share a hidden size of {} (each needs the same, even number). Change either.",
         shape.heads, shape.hidden);
  }
  if (shape.heads % shape.kv_heads != 0) {
    fail("{} heads share {} key and value heads (each needs as many). Change either.", shape.heads,
         shape.kv_heads);
  }
}

}  // namespace longhaul::nn
