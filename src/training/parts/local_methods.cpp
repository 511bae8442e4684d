#include "training/parts/local_methods.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "compress/rivals/bit_payloads.hpp"
#include "compress/rivals/outer_steps.hpp"
#include "compress/wire/dense.hpp"

namespace longhaul::training {
namespace {

std::vector<float> sum_of_four_bits(std::span<const SetPayload> sets, std::int64_t numbers) {
  std::vector<float> sum;
  for (const SetPayload& set : sets) {
    std::vector<float> one = compress::decode_four_bits(set.payload, {set.source, numbers});
    if (sum.empty())
      sum = std::move(one);
    else
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

/// All of the outer gradient travels, as f32, which sites may sum on the way, or with 4 bits.
class DenseOuterMethod final : public PartMethod {
public:
  DenseOuterMethod(const RivalSettings& settings, const PartPlace& place)
      : settings_{settings}, place_{place} {}

  std::vector<std::byte> own_set(int /*iteration*/, std::span<const float> gradient) override {
    compress::require_finite(gradient);
    if (place_.accounts) add_up(seen_, gradient);
    if (settings_.bits != kFourBits)
      return compress::encode_dense(gradient, compress::DenseFormat::f32);
    return settings_.feedback ? rounded_set(gradient) : compress::encode_four_bits(gradient);
  }
  std::vector<std::byte> site_set(int /*iteration*/, std::span<const SetPayload> sets) override {
    if (!sends_all(settings_.rival))
      fail("{}: a site's choice is not defined. Use exchange = \"direct\".", sets.front().source);
    return compress::encode_dense(sum_of_dense(sets, place_.numbers), compress::DenseFormat::f32);
  }
  void merge(int /*iteration*/, std::span<const SetPayload> sets) override {
    mean_ = settings_.bits == kFourBits ? sum_of_four_bits(sets, place_.numbers)
                                        : sum_of_dense(sets, place_.numbers);
    if (place_.accounts) add_up(merged_, mean_);
    for (float& number : mean_) number /= static_cast<float>(place_.replicas);
  }
  void step(int /*iteration*/, std::span<float> weights) override {
    if (!outer_) {
      outer_.emplace(
          compress::OuterSettings{.rate = settings_.outer_rate, .momentum = settings_.momentum},
          weights);
      if (!loaded_momenta_.empty()) outer_->set_momenta(std::move(loaded_momenta_));
    }
    outer_->merge(mean_, weights);
  }
  void finish() override {}
  /// The anchor is the weights.
  void save(StateWriter& to) const override {
    to.put_all<float>(outer_ ? outer_->momenta() : loaded_momenta_);
    to.put_all<float>(residual_);
    to.put_all<double>(seen_);
    to.put_all<double>(merged_);
  }
  void load(StateReader& from) override {
    loaded_momenta_ = from.take_all<float>();
    residual_ = from.take_all<float>();
    seen_ = from.take_all<double>();
    merged_ = from.take_all<double>();
  }
  std::size_t largest_set() const override {
    return compress::kPayloadHeader + 4 * static_cast<std::size_t>(place_.numbers);
  }
  std::span<const float> residual() const override { return residual_; }
  /// Four bits lose their rounding, unless it is fed back.
  std::span<const double> gradients_seen() const override {
    const bool forgets = settings_.bits == kFourBits && !settings_.feedback;
    return forgets ? std::span<const double>{} : seen_;
  }
  std::span<const double> sums_seen() const override { return merged_; }

private:
  /// Four bits of all that waits; what they do not say waits on.
  std::vector<std::byte> rounded_set(std::span<const float> gradient) {
    residual_.resize(gradient.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) residual_[i] += gradient[i];
    std::vector<float> rounded = residual_;
    compress::round_to_int4(rounded);
    std::vector<std::byte> set = compress::encode_four_bits(residual_);
    for (std::size_t i = 0; i < rounded.size(); ++i) residual_[i] -= rounded[i];
    return set;
  }

  RivalSettings settings_;
  PartPlace place_;
  std::optional<compress::OuterSteps> outer_;  ///< from the first step on, which has the weights
  std::vector<float> mean_, loaded_momenta_, residual_;
  std::vector<double> seen_, merged_;
};

/// The largest numbers of each chunk of the outer gradient, two bits each.
class SparseOuterMethod final : public PartMethod {
public:
  SparseOuterMethod(const RivalSettings& settings, const PartPlace& place)
      : settings_{settings},
        place_{place},
        chunks_{chunks_of(place, compress::kSparseLocoSide,
                          compress::kSparseLocoSide * compress::kSparseLocoSide)},
        outer_{settings.keep, settings.decay, chunks_, static_cast<std::size_t>(place.numbers)} {}

  std::vector<std::byte> own_set(int /*iteration*/, std::span<const float> gradient) override {
    compress::require_finite(gradient);
    if (place_.accounts) add_decayed(seen_, gradient, outer_.residual(), settings_.decay);
    return compress::encode_two_bits(outer_.take(gradient));
  }
  std::vector<std::byte> site_set(int /*iteration*/, std::span<const SetPayload> sets) override {
    fail("{}: a site's choice is not defined. Use exchange = \"direct\".", sets.front().source);
  }
  void merge(int /*iteration*/, std::span<const SetPayload> sets) override {
    std::vector<compress::SparseSet> decoded;
    decoded.reserve(sets.size());
    for (const SetPayload& set : sets)
      decoded.push_back(compress::decode_two_bits(set.payload, {set.source, place_.numbers}));
    sum_ = compress::merge(decoded);
    if (!place_.accounts) return;
    std::vector<float> numbers(static_cast<std::size_t>(place_.numbers));
    compress::add_to(numbers, sum_);
    add_up(merged_, numbers);
  }
  void step(int /*iteration*/, std::span<float> weights) override {
    compress::add_to(weights, sum_, -settings_.outer_rate / static_cast<float>(place_.replicas));
  }
  void finish() override {}
  void save(StateWriter& to) const override {
    to.put_all<float>(outer_.residual());
    to.put_all<double>(seen_);
    to.put_all<double>(merged_);
  }
  void load(StateReader& from) override {
    outer_.restore(from.take_all<float>());
    seen_ = from.take_all<double>();
    merged_ = from.take_all<double>();
  }
  /// A place takes 5 bytes at most, a value 2 bits.
  std::size_t largest_set() const override {
    const auto kept = static_cast<std::size_t>(compress::kept_of_chunks(chunks_, settings_.keep));
    return compress::kTwoBitHeader + 5 * kept + kept / 4 + 1;
  }
  std::span<const float> residual() const override { return outer_.residual(); }
  std::span<const double> gradients_seen() const override { return seen_; }
  std::span<const double> sums_seen() const override { return merged_; }

private:
  RivalSettings settings_;
  PartPlace place_;
  std::vector<compress::TensorChunk> chunks_;
  compress::SparseOuterGradient outer_;
  compress::SparseSet sum_;
  std::vector<double> seen_, merged_;
};

}  // namespace

std::unique_ptr<PartMethod> make_local(const RivalSettings& settings, const PartPlace& place) {
  if (place.staleness > 0)
    fail(
        "{}: staleness {} (local steps begin with the weights that all have after an exchange). "
        "Set it to 0.",
        to_string(settings.rival), place.staleness);
  if (settings.rival == Rival::sparseloco)
    return std::make_unique<SparseOuterMethod>(settings, place);
  return std::make_unique<DenseOuterMethod>(settings, place);
}

LocalSteps::LocalSteps(const StepSettings& settings, std::int64_t numbers)
    : settings_{settings}, state_{compress::fresh_state(settings.optimizer, numbers, 1)} {
  compress::check(settings.optimizer);
}

void LocalSteps::start(std::span<const float> weights) {
  anchor_.assign(weights.begin(), weights.end());
  weights_ = anchor_;
}

void LocalSteps::meet(std::span<const float> weights, float own) {
  anchor_.assign(weights.begin(), weights.end());
  for (std::size_t i = 0; i < weights_.size(); ++i)
    weights_[i] = own == 0 ? anchor_[i] : own * weights_[i] + (1 - own) * anchor_[i];
}

void LocalSteps::step(std::span<const float> gradient) {
  compress::dense_step(settings_.optimizer, ++steps_, settings_.learning_rate, weights_, gradient,
                       state_);
}

std::vector<float> LocalSteps::outer_gradient() const {
  std::vector<float> gradient(anchor_.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = anchor_[i] - weights_[i];
  return gradient;
}

void LocalSteps::save(StateWriter& to) const {
  save_optimizer(to, state_);
  to.put(steps_);
  to.put_all<float>(anchor_);
  to.put_all<float>(weights_);
}

void LocalSteps::load(StateReader& from) {
  load_optimizer(from, state_);
  steps_ = from.take<std::int64_t>();
  anchor_ = from.take_all<float>();
  weights_ = from.take_all<float>();
}

}  // namespace longhaul::training
