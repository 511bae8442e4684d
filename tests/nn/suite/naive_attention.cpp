#include <cmath>

#include "naive.hpp"

namespace longhaul::naive {

namespace {

/// Numbers of one head in a row of Q, K and V.
struct HeadOfRow {
  const nn::AttentionShape& shape;
  int sequence, head;

  [[nodiscard]] std::size_t at(int token, int slot, int i) const {
    const int row = sequence * shape.sequence + token;
    const int width = (shape.heads + 2 * shape.kv_heads) * shape.head_size;
    return static_cast<std::size_t>(row * width + slot * shape.head_size + i);
  }
  [[nodiscard]] int kv_head() const { return head / (shape.heads / shape.kv_heads); }
  [[nodiscard]] std::size_t query(int token, int i) const { return at(token, head, i); }
  [[nodiscard]] std::size_t key(int token, int i) const {
    return at(token, shape.heads + kv_head(), i);
  }
  [[nodiscard]] std::size_t value(int token, int i) const {
    return at(token, shape.heads + shape.kv_heads + kv_head(), i);
  }
  [[nodiscard]] std::size_t out(int token, int i) const {
    const int row = sequence * shape.sequence + token;
    return static_cast<std::size_t>((row * shape.heads + head) * shape.head_size + i);
  }
};

/// The attention that `token` pays to each token up to itself, and the log of the sum of
/// exponentials.
Numbers attention_paid(const HeadOfRow& place, const Numbers& qkv, int token, double& log_sum) {
  Numbers paid;
  double sum = 0;
  for (int other = 0; other <= token; ++other) {
    double score = 0;
    for (int i = 0; i < place.shape.head_size; ++i) {
      score += qkv[place.query(token, i)] * qkv[place.key(other, i)];
    }
    paid.push_back(std::exp(score / std::sqrt(place.shape.head_size)));
    sum += paid.back();
  }
  for (double& part : paid) part /= sum;
  log_sum = std::log(sum);
  return paid;
}

void for_each_head(const nn::AttentionShape& shape,
                   const std::function<void(const HeadOfRow&)>& action) {
  for (int sequence = 0; sequence < shape.batch; ++sequence) {
    for (int head = 0; head < shape.heads; ++head) action({shape, sequence, head});
  }
}

/// The part that the output of `token` adds to the gradients of its query and of keys and values
/// before it.
void add_gradient(const HeadOfRow& place, const Numbers& qkv, const Numbers& dout, int token,
                  Numbers& gradient) {
  double log_sum = 0;
  const Numbers paid = attention_paid(place, qkv, token, log_sum);
  const int size = place.shape.head_size;
  Numbers of_paid(paid.size());
  for (int other = 0; other <= token; ++other) {
    const auto at = static_cast<std::size_t>(other);
    for (int i = 0; i < size; ++i) {
      of_paid[at] += dout[place.out(token, i)] * qkv[place.value(other, i)];
      gradient[place.value(other, i)] += paid[at] * dout[place.out(token, i)];
    }
  }
  const double mean = dot(paid, of_paid);
  for (int other = 0; other <= token; ++other) {
    const auto at = static_cast<std::size_t>(other);
    const double of_score = paid[at] * (of_paid[at] - mean) / std::sqrt(size);
    for (int i = 0; i < size; ++i) {
      gradient[place.query(token, i)] += of_score * qkv[place.key(other, i)];
      gradient[place.key(other, i)] += of_score * qkv[place.query(token, i)];
    }
  }
}

}  // namespace

Attended attention(const nn::AttentionShape& shape, const Numbers& qkv) {
  Attended result{Numbers(shape.tokens() * static_cast<std::size_t>(shape.heads) *
                          static_cast<std::size_t>(shape.head_size)),
                  {}};
  for_each_head(shape, [&](const HeadOfRow& place) {
    for (int token = 0; token < shape.sequence; ++token) {
      const Numbers paid = attention_paid(place, qkv, token, result.log_sums.emplace_back());
      for (int other = 0; other <= token; ++other) {
        for (int i = 0; i < shape.head_size; ++i) {
          result.out[place.out(token, i)] +=
              paid[static_cast<std::size_t>(other)] * qkv[place.value(other, i)];
        }
      }
    }
  });
  return result;
}

Numbers attention_gradient(const nn::AttentionShape& shape, const Numbers& qkv,
                           const Numbers& dout) {
  Numbers gradient(qkv.size());
  for_each_head(shape, [&](const HeadOfRow& place) {
    for (int token = 0; token < shape.sequence; ++token) {
      add_gradient(place, qkv, dout, token, gradient);
    }
  });
  return gradient;
}

Numbers rotary(const nn::AttentionShape& shape, double theta, nn::Direction direction,
               const Numbers& qkv) {
  Numbers turned = qkv;
  const double sign = direction == nn::Direction::forward ? 1 : -1;
  for (int sequence = 0; sequence < shape.batch; ++sequence) {
    const HeadOfRow place{shape, sequence, 0};
    for (int token = 0; token < shape.sequence; ++token) {
      for (int head = 0; head < shape.heads + shape.kv_heads; ++head) {
        for (int i = 0; i < shape.head_size / 2; ++i) {
          const double angle = sign * token * std::pow(theta, -2.0 * i / shape.head_size);
          const std::size_t low = place.at(token, head, i);
          const std::size_t high = place.at(token, head, i + shape.head_size / 2);
          turned[low] = qkv[low] * std::cos(angle) - qkv[high] * std::sin(angle);
          turned[high] = qkv[high] * std::cos(angle) + qkv[low] * std::sin(angle);
        }
      }
    }
  }
  return turned;
}

}  // namespace longhaul::naive
