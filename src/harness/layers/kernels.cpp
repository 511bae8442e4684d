
#include <map>
#include <string>
#include <utility>

#include "harness/layers/input_sets.hpp"
#include "harness/layers/layer_parts.hpp"

namespace longhaul::harness {
namespace {

/// Measures calls one after the other; their tensors are given back in between.
class Kernels {
public:
  Kernels(nn::TensorOps& on, nn::DeviceMemory& from, const nn::ModelShape& of,
          const TimingOptions& how)
      : math{on},
        shape{of},
        tokens{of.tokens()},
        hidden{static_cast<std::size_t>(of.hidden)},
        inner{static_cast<std::size_t>(of.intermediate)},
        vocabulary{static_cast<std::size_t>(of.vocabulary)},
        number{static_cast<double>(bytes_of(on.working_type()))},
        type{on.working_type()},
        memory_{from},
        options_{how} {}

  [[nodiscard]] InputSets sets(double bytes) { return {math, memory_, bytes}; }
  void measure(const char* group, std::string name, double flops, double bytes,
               const std::function<void(int)>& call) {
    parts.push_back({group, std::move(name), flops, bytes, time_calls(math, options_, call)});
  }

  void product(const std::string& name, const nn::Gemm& gemm, NumberType result);
  void products();
  void norms();
  void attention();
  void swiglu();
  void ends();
  void optimizers();

  nn::TensorOps& math;
  nn::ModelShape shape;
  std::size_t tokens, hidden, inner, vocabulary;
  double number;  ///< bytes of one, of the working type
  NumberType type;
  std::vector<LayerPart> parts;

private:
  nn::DeviceMemory& memory_;
  TimingOptions options_;
};

void Kernels::product(const std::string& name, const nn::Gemm& gemm, NumberType result) {
  const auto size = [](int a, int b) {
    return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
  };
  const std::size_t a_count = size(gemm.m, gemm.k), b_count = size(gemm.k, gemm.n),
                    c_count = size(gemm.m, gemm.n);
  const double bytes = static_cast<double>(a_count + b_count) * number +
                       static_cast<double>(c_count * bytes_of(result)) * (gemm.accumulate ? 2 : 1);
  InputSets made = sets(bytes);
  const auto a = made.random(a_count, type), b = made.random(b_count, type),
             c = made.random(c_count, result);
  measure("gemm", name, 2.0 * gemm.m * gemm.n * gemm.k, bytes,
          [&](int call) { math.gemm(gemm, a(call), b(call), c(call)); });
}

void Kernels::products() {
  const std::map<std::string, std::pair<int, int>> maps{
      {"qkv", {(shape.heads + 2 * shape.kv_heads) * shape.head_size(), shape.hidden}},
      {"attention out", {shape.hidden, shape.hidden}},
      {"gate and up", {2 * shape.intermediate, shape.hidden}},
      {"down", {shape.hidden, shape.intermediate}}};
  const int rows = static_cast<int>(tokens);
  for (const auto& [name, size] : maps) {
    const auto [out, in] = size;
    product(name + ", F", {rows, out, in, false, true}, type);
    product(name + ", D", {rows, in, out}, type);
    product(name + ", W", {out, in, rows, true, false, true}, NumberType::f32);
  }
}

void Kernels::norms() {
  const double row = static_cast<double>(tokens * hidden) * number;
  InputSets made = sets(3 * row);
  const auto x = made.random(tokens * hidden, type), y = made.random(tokens * hidden, type),
             dy = made.random(tokens * hidden, type), weight = made.random(hidden, type),
             inverse = made.random(tokens, NumberType::f32),
             dweight = made.random(hidden, NumberType::f32);
  measure("kernel", "rms_norm", 0, 2 * row, [&](int call) {
    math.rms_norm(x(call), weight(call), shape.hidden, y(call), inverse(call));
  });
  measure("kernel", "rms_norm_input_gradient, added", 0, 4 * row, [&](int call) {
    math.rms_norm_input_gradient(x(call), weight(call), inverse(call), dy(call), shape.hidden, true,
                                 y(call));
  });
  measure("kernel", "rms_norm_weight_gradient", 0, 2 * row, [&](int call) {
    math.rms_norm_weight_gradient(x(call), inverse(call), dy(call), shape.hidden, dweight(call));
  });
  measure("kernel", "add", 0, 3 * row, [&](int call) { math.add(x(call), dy(call), y(call)); });
}

void Kernels::attention() {
  const nn::AttentionShape heads{shape.batch, shape.sequence, shape.heads, shape.kv_heads,
                                 shape.head_size()};
  const double qkv_bytes = static_cast<double>(tokens * heads.width()) * number;
  const double out_bytes = static_cast<double>(tokens * hidden) * number;
  InputSets made = sets(2 * qkv_bytes + 2 * out_bytes);
  const auto qkv = made.random(tokens * heads.width(), type),
             dqkv = made.random(tokens * heads.width(), type),
             out = made.random(tokens * hidden, type), dout = made.random(tokens * hidden, type),
             sums = made.random(tokens * static_cast<std::size_t>(shape.heads), NumberType::f32);
  const double turned =
      static_cast<double>(shape.heads + shape.kv_heads) / (shape.heads + 2 * shape.kv_heads);
  const LayerFlops flops{shape};
  measure("kernel", "rotary", 0, 2 * turned * qkv_bytes, [&](int call) {
    math.rotary(heads, shape.rotary_theta, nn::Direction::forward, qkv(call));
  });
  measure("attention", "attention", flops.attention, qkv_bytes + out_bytes,
          [&](int call) { math.attention(heads, qkv(call), out(call), sums(call)); });
  measure("attention", "attention_gradient", 2 * flops.attention, 2 * qkv_bytes + 2 * out_bytes,
          [&](int call) {
            math.attention_gradient(heads, qkv(call), out(call), sums(call), dout(call),
                                    dqkv(call));
          });
}

void Kernels::swiglu() {
  const double row = static_cast<double>(tokens * inner) * number;
  InputSets made = sets(5 * row);
  const auto gate_up = made.random(2 * tokens * inner, type), y = made.random(tokens * inner, type),
             dgate_up = made.random(2 * tokens * inner, type);
  measure("kernel", "swiglu", 0, 3 * row,
          [&](int call) { math.swiglu(gate_up(call), shape.intermediate, y(call)); });
  measure("kernel", "swiglu_gradient", 0, 5 * row, [&](int call) {
    math.swiglu_gradient(gate_up(call), y(call), shape.intermediate, dgate_up(call));
  });
}

void Kernels::ends() {
  const double row = static_cast<double>(tokens * hidden);
  InputSets made = sets(row * (number + 4));
  const auto text = made.integers(tokens, shape.vocabulary),
             table = made.random(vocabulary * hidden, type), y = made.random(tokens * hidden, type),
             dtable = made.random(vocabulary * hidden, NumberType::f32);
  measure("kernel", "embed", 0, 2 * row * number,
          [&](int call) { math.embed(text(call), table(call), shape.hidden, y(call)); });
  // A row of the table is read and written once for each token of the vocabulary that is there: at
  // most for each place.
  measure("kernel", "embed_gradient", 0, row * (number + 8),
          [&](int call) { math.embed_gradient(text(call), y(call), shape.hidden, dtable(call)); });
  const double logits_bytes = static_cast<double>(tokens * vocabulary) * number;
  InputSets rows = sets(logits_bytes);
  const auto logits = rows.random(tokens * vocabulary, type),
             loss = rows.random(1, NumberType::f32);
  measure("kernel", "cross_entropy", 0, 2 * logits_bytes, [&](int call) {
    math.cross_entropy(text(call), shape.vocabulary, 1e-3F, logits(call), loss(call));
  });
}

void Kernels::optimizers() {
  const std::size_t count = hidden * inner;
  const double numbers = static_cast<double>(count);
  constexpr auto kF32 = NumberType::f32;
  // In fp32 the weights are the master.
  const double weight_bytes = type == kF32 ? 0 : number;
  InputSets made = sets(numbers * 18);
  const auto gradient = made.random(count, kF32), mean = made.random(count, kF32),
             square = made.random(count, kF32), master = made.random(count, kF32),
             rounded = type == kF32 ? master : made.random(count, type);
  for (int set = 0; set < 16; ++set) math.zero(square(set));  // squares are never negative
  measure("kernel", "sgd", 0, numbers * (12 + weight_bytes),
          [&](int call) { math.sgd(1e-6F, gradient(call), master(call), rounded(call)); });
  measure("kernel", "adamw", 0, numbers * (28 + weight_bytes), [&](int call) {
    math.adamw({}, gradient(call), mean(call), square(call), master(call), rounded(call));
  });
}

}  // namespace

std::vector<LayerPart> time_products(nn::TensorOps& math, nn::DeviceMemory& memory,
                                     const std::vector<ListedProduct>& products,
                                     const TimingOptions& options) {
  const nn::ModelShape none;
  Kernels kernels{math, memory, none, options};
  for (const ListedProduct& one : products)
    kernels.product(fmt::format("{} x {} x {}", one.m, one.n, one.k),
                    {one.m, one.n, one.k, false, true}, kernels.type);
  return std::move(kernels.parts);
}

std::vector<LayerPart> time_references(nn::TensorOps& math, nn::DeviceMemory& memory, int size,
                                       std::size_t copied, const TimingOptions& options) {
  nn::ModelShape none;
  Kernels kernels{math, memory, none, options};
  {
    const double bytes = 2.0 * static_cast<double>(copied) * kernels.number;
    InputSets made = kernels.sets(bytes);
    const auto from = made.random(copied, kernels.type), to = made.random(copied, kernels.type);
    kernels.measure("reference", "copy", 0, bytes,
                    [&](int call) { math.copy(from(call), to(call)); });
  }
  const std::size_t count = static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  InputSets made = kernels.sets(3 * static_cast<double>(count) * kernels.number);
  const auto a = made.random(count, kernels.type), b = made.random(count, kernels.type),
             c = made.random(count, kernels.type);
  kernels.measure("reference", fmt::format("product of {0} x {0} x {0}", size),
                  2.0 * size * static_cast<double>(count),
                  3.0 * static_cast<double>(count) * kernels.number, [&](int call) {
                    math.gemm({size, size, size, false, true}, a(call), b(call), c(call));
                  });
  return std::move(kernels.parts);
}

std::vector<LayerPart> time_kernels(nn::TensorOps& math, nn::DeviceMemory& memory,
                                    const nn::ModelShape& shape, const TimingOptions& options) {
  Kernels kernels{math, memory, shape, options};
  kernels.products();
  kernels.norms();
  kernels.attention();
  kernels.swiglu();
  kernels.ends();
  kernels.optimizers();
  return std::move(kernels.parts);
}

}  // namespace longhaul::harness
