#include "compress/rivals/one_bit.hpp"

#include <cmath>

#include "base/error.hpp"

namespace longhaul::compress {

OneBitVector one_bit(std::span<float> sum) {
  OneBitVector sent{sum.size(), 0, std::vector<std::uint64_t>((sum.size() + 63) / 64)};
  double mass = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    mass += std::fabs(static_cast<double>(sum[i]));
    if (sum[i] < 0) sent.signs[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  if (!sum.empty()) sent.scale = static_cast<float>(mass / static_cast<double>(sum.size()));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] -= sent.at(i);
  return sent;
}

OneBitAdam::OneBitAdam(const Settings& settings, std::size_t replicas, std::size_t count)
    : settings_{settings},
      first_(count),
      second_(count),
      server_residual_(count),
      residuals_(replicas, std::vector<float>(count)) {}

/// The first moment of the mean gradient, and the second as long as the warm-up lasts.
void OneBitAdam::average(const std::vector<std::vector<float>>& gradients) {
  const auto share = 1 / static_cast<float>(gradients.size());
  for (std::size_t i = 0; i < first_.size(); ++i) {
    float mean = 0;
    for (const std::vector<float>& gradient : gradients) mean += gradient[i];
    mean *= share;
    first_[i] = settings_.beta1 * first_[i] + (1 - settings_.beta1) * mean;
    second_[i] = settings_.beta2 * second_[i] + (1 - settings_.beta2) * mean * mean;
  }
  bytes_sent_ = 4 * first_.size();
}

/// Each replica sends its own first moment; the server sends their mean. Both keep what is lost.
void OneBitAdam::average_by_sign(const std::vector<std::vector<float>>& gradients) {
  const auto share = 1 / static_cast<float>(gradients.size());
  for (std::size_t replica = 0; replica < gradients.size(); ++replica) {
    std::vector<float>& sum = residuals_[replica];
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += settings_.beta1 * first_[i] + (1 - settings_.beta1) * gradients[replica][i];
    const OneBitVector sent = one_bit(sum);
    bytes_sent_ = sent.bytes();
    for (std::size_t i = 0; i < sum.size(); ++i) server_residual_[i] += share * sent.at(i);
  }
  const OneBitVector answer = one_bit(server_residual_);
  for (std::size_t i = 0; i < first_.size(); ++i) first_[i] = answer.at(i);
}

void OneBitAdam::step(std::span<float> weights, const std::vector<std::vector<float>>& gradients,
                      float learning_rate) {
  LONGHAUL_ASSERT(gradients.size() == residuals_.size(), "{} gradients", gradients.size());
  const bool warm = is_warm();
  warm ? average_by_sign(gradients) : average(gradients);
  ++steps_;
  const int second_steps = warm ? settings_.warm_up : steps_;
  const auto left = [](float beta, int steps) {
    return 1 - std::pow(static_cast<double>(beta), static_cast<double>(steps));
  };
  const double first = left(settings_.beta1, steps_);
  const double second = second_steps > 0 ? left(settings_.beta2, second_steps) : 1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double root = std::sqrt(static_cast<double>(second_[i]) / second);
    weights[i] -= static_cast<float>(static_cast<double>(learning_rate) *
                                     (static_cast<double>(first_[i]) / first) /
                                     (root + static_cast<double>(settings_.epsilon)));
  }
}

}  // namespace longhaul::compress
