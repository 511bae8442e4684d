#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace longhaul::compress {

/// A sign for each number and one magnitude for all: 1 bit a number and 4 bytes.
struct OneBitVector {
  std::size_t count = 0;
  float scale = 0;                   ///< mean magnitude
  std::vector<std::uint64_t> signs;  ///< bit i: number i is negative

  [[nodiscard]] float at(std::size_t i) const {
    return ((signs[i / 64] >> (i % 64)) & 1U) != 0 ? -scale : scale;
  }
  [[nodiscard]] std::size_t bytes() const { return 4 + (count + 7) / 8; }
};

/// One side that sends: a replica, or the server that answers all. `sum` is what it has to send and
/// keeps what the message does not say.
[[nodiscard]] OneBitVector one_bit(std::span<float> sum);

/// 1-bit Adam (Tang et al. 2021): Adam for the first `warm_up` steps with dense means; then its
/// second moment stays as it is, and the first moments travel with one bit a number, with feedback
/// on both sides. One object plays all replicas, for they only differ in gradient and residual.
class OneBitAdam {
public:
  struct Settings {
    int warm_up = 0;  ///< steps
    float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;
  };
  OneBitAdam(const Settings& settings, std::size_t replicas, std::size_t count);

  /// One step of the weights, which all replicas have, with a gradient from each.
  void step(std::span<float> weights, const std::vector<std::vector<float>>& gradients,
            float learning_rate);
  [[nodiscard]] bool is_warm() const { return steps_ >= settings_.warm_up; }
  /// Of one replica each way, in the last step.
  [[nodiscard]] std::size_t bytes_sent() const { return bytes_sent_; }

private:
  void average(const std::vector<std::vector<float>>& gradients);
  void average_by_sign(const std::vector<std::vector<float>>& gradients);

  Settings settings_;
  int steps_ = 0;
  std::size_t bytes_sent_ = 0;
  std::vector<float> first_, second_, server_residual_;
  std::vector<std::vector<float>> residuals_;
};

}  // namespace longhaul::compress
