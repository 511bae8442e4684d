#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "nn/tensor_ops.hpp"

/// The operations of TensorOps, once more, in double precision and as the formulas read: nothing
/// here is shared with src/.
namespace longhaul::naive {

using Numbers = std::vector<double>;
using Tokens = std::vector<std::int32_t>;

constexpr double kNormEpsilon = 1e-5;

/// op(a) op(b) + c; `c` empty: 0.
[[nodiscard]] Numbers gemm(const nn::Gemm& shape, const Numbers& a, const Numbers& b,
                           const Numbers& c = {});

[[nodiscard]] Numbers inverse_rms(const Numbers& x, int width);
[[nodiscard]] Numbers rms_norm(const Numbers& x, const Numbers& weight, int width);
struct NormGradients {
  Numbers dx, dweight;
};
[[nodiscard]] NormGradients rms_norm_gradients(const Numbers& x, const Numbers& weight,
                                               const Numbers& dy, int width);

[[nodiscard]] Numbers rotary(const nn::AttentionShape& shape, double theta, nn::Direction direction,
                             const Numbers& qkv);
struct Attended {
  Numbers out, log_sums;
};
[[nodiscard]] Attended attention(const nn::AttentionShape& shape, const Numbers& qkv);
[[nodiscard]] Numbers attention_gradient(const nn::AttentionShape& shape, const Numbers& qkv,
                                         const Numbers& dout);

[[nodiscard]] Numbers swiglu(const Numbers& gate_up, int width);
[[nodiscard]] Numbers swiglu_gradient(const Numbers& gate_up, const Numbers& dy, int width);

[[nodiscard]] Numbers embed(const Tokens& tokens, const Numbers& table, int width);
[[nodiscard]] Numbers embed_gradient(const Tokens& tokens, const Numbers& dy, int width,
                                     int vocabulary);
struct Loss {
  double sum = 0;    ///< over the tokens that count
  Numbers gradient;  ///< of `sum`
};
[[nodiscard]] Loss cross_entropy(const Tokens& targets, int vocabulary, const Numbers& logits);

[[nodiscard]] double dot(const Numbers& a, const Numbers& b);
/// By central differences: what a gradient has to be, whatever its formula.
[[nodiscard]] Numbers differences(const std::function<double(const Numbers&)>& of, Numbers at);
/// |got - expected| / |expected|, over all numbers; the length of `got` where that is 0.
[[nodiscard]] double distance(const Numbers& got, const Numbers& expected);

}  // namespace longhaul::naive
