#include <algorithm>
#include <cmath>
#include <vector>

#include "base/index.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cpu/numbers.hpp"

/// Operations on rows of a width: norm, SwiGLU, embedding, cross-entropy.
namespace longhaul::nn {

namespace {

constexpr double kNormEpsilon = 1e-5;

struct Row {
  std::size_t at, width;
  [[nodiscard]] std::span<float> of(ArrayView view) const {
    return floats(view).subspan(at * width, width);
  }
};

double sigmoid(double number) { return 1.0 / (1.0 + std::exp(-number)); }

/// The logits of one token become scale * gradient; gives the token's loss, without the scale.
double cross_entropy_row(std::span<float> logits, std::size_t target, float scale) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  const double at_target = logits[target];
  double sum = 0;
  for (float& logit : logits) {
    logit = std::exp(logit - largest);
    sum += logit;
  }
  const auto factor = static_cast<float>(scale / sum);
  for (float& logit : logits) logit *= factor;
  logits[target] -= scale;
  return std::log(sum) + largest - at_target;
}

}  // namespace

void CpuTensorOps::rms_norm(ArrayView x, ArrayView weight, int width, ArrayView y,
                            ArrayView inverse_rms) {
  for (Row row{0, to_size(width)}; row.at < rows_of(x, width); ++row.at) {
    const auto from = row.of(x), to = row.of(y), factors = floats(weight);
    double squares = 0;
    for (const float number : from) squares += static_cast<double>(number) * number;
    const auto inverse = static_cast<float>(1.0 / std::sqrt(squares / width + kNormEpsilon));
    floats(inverse_rms)[row.at] = inverse;
    for (std::size_t i = 0; i < row.width; ++i) to[i] = from[i] * inverse * factors[i];
  }
}

void CpuTensorOps::rms_norm_input_gradient(ArrayView x, ArrayView weight, ArrayView inverse_rms,
                                           ArrayView dy, int width, bool accumulate, ArrayView dx) {
  for (Row row{0, to_size(width)}; row.at < rows_of(x, width); ++row.at) {
    const auto at = row.of(x), from = row.of(dy), to = row.of(dx), factors = floats(weight);
    const float inverse = floats(inverse_rms)[row.at];
    double along = 0;  // how far the gradient points along x
    for (std::size_t i = 0; i < row.width; ++i) {
      along += static_cast<double>(from[i]) * factors[i] * at[i];
    }
    const auto back = static_cast<float>(along * inverse * inverse / width);
    for (std::size_t i = 0; i < row.width; ++i) {
      const float gradient = inverse * (from[i] * factors[i] - at[i] * back);
      to[i] = accumulate ? to[i] + gradient : gradient;
    }
  }
}

void CpuTensorOps::rms_norm_weight_gradient(ArrayView x, ArrayView inverse_rms, ArrayView dy,
                                            int width, ArrayView dweight) {
  std::vector<double> sums(to_size(width));
  for (Row row{0, sums.size()}; row.at < rows_of(x, width); ++row.at) {
    const auto at = row.of(x), from = row.of(dy);
    const double inverse = floats(inverse_rms)[row.at];
    for (std::size_t i = 0; i < row.width; ++i) sums[i] += inverse * from[i] * at[i];
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    floats(dweight)[i] = static_cast<float>(floats(dweight)[i] + sums[i]);
  }
}

void CpuTensorOps::swiglu(ArrayView gate_up, int width, ArrayView y) {
  for (Row row{0, to_size(width)}; row.at < rows_of(y, width); ++row.at) {
    const auto both = Row{row.at, 2 * row.width}.of(gate_up), to = row.of(y);
    for (std::size_t i = 0; i < row.width; ++i) {
      to[i] = static_cast<float>(both[i] * sigmoid(both[i]) * both[row.width + i]);
    }
  }
}

void CpuTensorOps::swiglu_gradient(ArrayView gate_up, ArrayView dy, int width, ArrayView dgate_up) {
  for (Row row{0, to_size(width)}; row.at < rows_of(dy, width); ++row.at) {
    const Row wide{row.at, 2 * row.width};
    const auto both = wide.of(gate_up), from = row.of(dy), to = wide.of(dgate_up);
    for (std::size_t i = 0; i < row.width; ++i) {
      const double gate = both[i], up = both[row.width + i], open = sigmoid(gate);
      to[i] = static_cast<float>(from[i] * up * open * (1 + gate * (1 - open)));
      to[row.width + i] = static_cast<float>(from[i] * gate * open);
    }
  }
}

void CpuTensorOps::embed(ArrayView tokens, ArrayView table, int width, ArrayView y) {
  Row row{0, to_size(width)};
  for (const std::int32_t token : integers(tokens)) {
    const auto from = Row{to_size(token), row.width}.of(table);
    std::copy(from.begin(), from.end(), row.of(y).begin());
    ++row.at;
  }
}

void CpuTensorOps::embed_gradient(ArrayView tokens, ArrayView dy, int width, ArrayView dtable) {
  Row row{0, to_size(width)};
  for (const std::int32_t token : integers(tokens)) {
    const auto from = row.of(dy), to = Row{to_size(token), row.width}.of(dtable);
    for (std::size_t i = 0; i < row.width; ++i) to[i] += from[i];
    ++row.at;
  }
}

void CpuTensorOps::cross_entropy(ArrayView targets, int vocabulary, float scale, ArrayView logits,
                                 ArrayView loss) {
  double sum = 0;
  Row row{0, to_size(vocabulary)};
  for (const std::int32_t target : integers(targets)) {
    const auto numbers = row.of(logits);
    if (target < 0) {
      std::fill(numbers.begin(), numbers.end(), 0.0F);
    } else {
      sum += cross_entropy_row(numbers, to_size(target), scale);
    }
    ++row.at;
  }
  floats(loss)[0] = static_cast<float>(floats(loss)[0] + scale * sum);
}

}  // namespace longhaul::nn
