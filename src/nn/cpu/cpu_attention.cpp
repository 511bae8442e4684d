#include <algorithm>
#include <cmath>

#include <cblas.h>

#include "base/index.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cpu/numbers.hpp"

namespace longhaul::nn {

namespace {

constexpr int kRows = 128;  ///< of scores at a time

/// One query head of one sequence, with the key and value head that it uses. Matrices are
/// [sequence, head_size] with a row every `stride` numbers.
struct AttentionHead {
  const float *query, *key, *value;
  int stride, sequence, size;
  float scale;
};

/// Rows [first, first + rows) of scores against keys [0, first + rows): none looks further.
struct Stretch {
  int first, rows;
  [[nodiscard]] int keys() const { return first + rows; }
};

/// Where a head's numbers lie in a [tokens, width] matrix.
struct Offsets {
  std::size_t query, key, value, out, sums;
};

Offsets offsets(const AttentionShape& shape, int sequence, int head) {
  const auto size = to_size(shape.head_size);
  const auto heads = to_size(shape.heads);
  const auto kv_heads = to_size(shape.kv_heads);
  const auto token = to_size(sequence) * to_size(shape.sequence);
  const auto query_head = to_size(head);
  const std::size_t kv_head = query_head / (heads / kv_heads);
  const std::size_t row = token * shape.width();
  return {row + query_head * size, row + (heads + kv_head) * size,
          row + (heads + kv_heads + kv_head) * size, token * heads * size + query_head * size,
          token * heads + query_head * to_size(shape.sequence)};
}

AttentionHead head_at(const AttentionShape& shape, ArrayView qkv, const Offsets& at) {
  const float* const numbers = floats(qkv).data();
  return {numbers + at.query,
          numbers + at.key,
          numbers + at.value,
          static_cast<int>(shape.width()),
          shape.sequence,
          shape.head_size,
          1 / std::sqrt(static_cast<float>(shape.head_size))};
}

std::size_t at_row(int row, int stride) { return to_size(row) * to_size(stride); }

/// to[rows, keys] = factor * left[rows, size] right[keys, size]^T.
void products(const AttentionHead& head, Stretch part, float factor, const float* left,
              int left_stride, const float* right, float* to) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, part.rows, part.keys(), head.size, factor,
              left + at_row(part.first, left_stride), left_stride, right, head.stride, 0.0F, to,
              part.keys());
}

/// Numbers right of the diagonal become 0.
void cut(Stretch part, float* scores) {
  for (int row = 0; row < part.rows; ++row) {
    float* const begin = scores + at_row(row, part.keys());
    std::fill(begin + part.first + row + 1, begin + part.keys(), 0.0F);
  }
}

/// Scores of a row become weights that sum to 1; gives the log of the sum of exponentials.
float softmax(std::span<float> row) {
  const float largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (float& score : row) {
    score = std::exp(score - largest);
    sum += score;
  }
  const auto inverse = static_cast<float>(1 / sum);
  for (float& weight : row) weight *= inverse;
  return largest + static_cast<float>(std::log(sum));
}

/// The rows of `to` (a row every `stride`) from weights[rows, keys] and right[keys, size].
void weigh(const AttentionHead& head, Stretch part, const float* weights, const float* right,
           float* to, int stride) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, part.rows, head.size, part.keys(), 1.0F,
              weights, part.keys(), right, head.stride, 0.0F, to + at_row(part.first, stride),
              stride);
}

/// to[keys, size] += weights[rows, keys]^T left[rows, size].
void spread(const AttentionHead& head, Stretch part, const float* weights, const float* left,
            int left_stride, float* to) {
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, part.keys(), head.size, part.rows, 1.0F,
              weights, part.keys(), left + at_row(part.first, left_stride), left_stride, 1.0F, to,
              head.stride);
}

/// `scores` become weights again and `gradients` (of the weights) those of the scores.
void score_gradients(const AttentionHead& head, Stretch part, const float* log_sums,
                     const float* out, const float* dout, int out_stride, float* scores,
                     float* gradients) {
  for (int row = 0; row < part.rows; ++row) {
    const std::size_t from = at_row(part.first + row, out_stride);
    double mean = 0;  // of the weights' gradients, weighted
    for (int i = 0; i < head.size; ++i) {
      const auto at = from + to_size(i);
      mean += static_cast<double>(out[at]) * dout[at];
    }
    float* const weight = scores + at_row(row, part.keys());
    float* const gradient = gradients + at_row(row, part.keys());
    for (int key = 0; key <= part.first + row; ++key) {
      weight[key] = std::exp(weight[key] - log_sums[part.first + row]);
      gradient[key] = head.scale * weight[key] * (gradient[key] - static_cast<float>(mean));
    }
  }
  cut(part, scores);
  cut(part, gradients);
}

template <typename Action>
void for_each_head(const AttentionShape& shape, const Action& action) {
  for (int sequence = 0; sequence < shape.batch; ++sequence) {
    for (int head = 0; head < shape.heads; ++head) action(offsets(shape, sequence, head));
  }
}

template <typename Action>
void for_each_stretch(const AttentionHead& head, const Action& action) {
  for (int first = 0; first < head.sequence; first += kRows) {
    action(Stretch{first, std::min(kRows, head.sequence - first)});
  }
}

}  // namespace

void CpuTensorOps::attention(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                             ArrayView log_sums) {
  scores_.resize(at_row(kRows, shape.sequence));
  const int out_stride = shape.heads * shape.head_size;
  for_each_head(shape, [&](const Offsets& at) {
    const AttentionHead head = head_at(shape, qkv, at);
    for_each_stretch(head, [&](Stretch part) {
      products(head, part, head.scale, head.query, head.stride, head.key, scores_.data());
      for (int row = 0; row < part.rows; ++row) {
        const auto seen = to_size(part.first + row) + 1;
        floats(log_sums)[at.sums + seen - 1] =
            softmax(std::span{scores_}.subspan(at_row(row, part.keys()), seen));
      }
      cut(part, scores_.data());
      weigh(head, part, scores_.data(), head.value, floats(out).data() + at.out, out_stride);
    });
  });
}

void CpuTensorOps::attention_gradient(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                                      ArrayView log_sums, ArrayView dout, ArrayView dqkv) {
  scores_.resize(at_row(kRows, shape.sequence));
  gradients_.resize(scores_.size());
  const int out_stride = shape.heads * shape.head_size;
  float* const scores = scores_.data();
  float* const gradients = gradients_.data();
  float* const to = floats(dqkv).data();
  zero(dqkv);  // keys and values gather from all heads that use them
  for_each_head(shape, [&](const Offsets& at) {
    const AttentionHead head = head_at(shape, qkv, at);
    const float* const down = floats(dout).data() + at.out;
    for_each_stretch(head, [&](Stretch part) {
      products(head, part, head.scale, head.query, head.stride, head.key, scores);
      products(head, part, 1.0F, down, out_stride, head.value, gradients);
      score_gradients(head, part, floats(log_sums).data() + at.sums, floats(out).data() + at.out,
                      down, out_stride, scores, gradients);
      weigh(head, part, gradients, head.key, to + at.query, head.stride);
      spread(head, part, gradients, head.query, head.stride, to + at.key);
      spread(head, part, scores, down, out_stride, to + at.value);
    });
  });
}

void CpuTensorOps::rotary(const AttentionShape& shape, float theta, Direction direction,
                          ArrayView qkv) {
  const auto half = to_size(shape.head_size) / 2;
  const double sign = direction == Direction::forward ? 1 : -1;
  for (std::size_t token = 0; token < shape.tokens(); ++token) {
    const auto position = static_cast<double>(token % to_size(shape.sequence));
    for (std::size_t i = 0; i < half; ++i) {
      const double angle =
          sign * position *
          std::pow(static_cast<double>(theta), -2.0 * static_cast<double>(i) / shape.head_size);
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      for (int head = 0; head < shape.heads + shape.kv_heads; ++head) {
        float* const low =
            floats(qkv).data() + token * shape.width() + to_size(head) * 2 * half + i;
        const float before = low[0], after = low[half];
        low[0] = before * cosine - after * sine;
        low[half] = before * sine + after * cosine;
      }
    }
  }
}

}  // namespace longhaul::nn
