#include "training/parts/low_rank_method.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "compress/optimizer/sparse_optimizer.hpp"
#include "compress/rivals/low_rank.hpp"
#include "compress/wire/dense.hpp"

namespace longhaul::training {
namespace {

constexpr std::uint64_t kSeedOfQ = 3;
static_assert(sizeof(Random) == sizeof(std::uint64_t));

/// One replica's side of all tensors of a part.
class LowRankMethod final : public PartMethod {
public:
  LowRankMethod(const RivalSettings& settings, const PartPlace& place, const StepSettings& step)
      : place_{place},
        step_{step},
        sizes_{low_rank_numbers(settings.rank, place.tensors)},
        state_{compress::fresh_state(step.optimizer, place.numbers, 1)},
        sum_(static_cast<std::size_t>(place.numbers)),
        residual_(sum_.size()) {
    const float share = 1 / static_cast<float>(place.replicas);
    for (std::size_t j = 0; j < place.tensors.size(); ++j) {
      const nn::ParameterPlace& tensor = place.tensors[j];
      if (!tensor.is_matrix()) continue;
      const std::uint64_t seed =
          derived_seed(kSeedOfQ, static_cast<std::uint64_t>(place.number), j);
      matrices_.push_back(
          {tensor, {tensor.rows, tensor.columns, to_size(settings.rank), seed, share}});
    }
  }

  std::vector<std::byte> own_set(int /*iteration*/, std::span<const float> gradient) override {
    compress::require_finite(gradient);
    if (place_.accounts) add_up(seen_, gradient);
    answered_ = false;
    std::vector<float> first;
    first.reserve(sizes_.first);
    auto matrix = matrices_.begin();
    for (const nn::ParameterPlace& tensor : place_.tensors) {
      const auto numbers = gradient.subspan(tensor.first, tensor.count());
      if (!tensor.is_matrix()) {
        first.insert(first.end(), numbers.begin(), numbers.end());
        continue;
      }
      const std::vector<float> p = (matrix++)->power.project(numbers);
      first.insert(first.end(), p.begin(), p.end());
    }
    return encoded(first);
  }

  std::vector<std::byte> site_set(int /*iteration*/, std::span<const SetPayload> sets) override {
    return encoded(sum_of(sets, answered_ ? sizes_.second : sizes_.first));
  }

  std::vector<std::byte> answer(int /*iteration*/, std::span<const SetPayload> sets) override {
    const std::vector<float> sum = sum_of(sets, sizes_.first);
    std::span<const float> rest{sum};
    const auto next = [&rest](std::size_t count) {
      const auto taken = rest.first(count);
      rest = rest.subspan(count);
      return taken;
    };
    std::vector<float> second;
    second.reserve(sizes_.second);
    auto matrix = matrices_.begin();
    for (const nn::ParameterPlace& tensor : place_.tensors) {
      if (!tensor.is_matrix()) {
        std::ranges::copy(next(tensor.count()), sum_.data() + tensor.first);
        continue;
      }
      compress::PowerSgd& power = (matrix++)->power;
      const auto p = next(power.numbers_of_p());
      const std::vector<float> q = power.answer({p.begin(), p.end()});
      second.insert(second.end(), q.begin(), q.end());
    }
    answered_ = true;
    return encoded(second);
  }

  void merge(int /*iteration*/, std::span<const SetPayload> sets) override {
    const std::vector<float> sum = sum_of(sets, sizes_.second);
    const float* q = sum.data();
    for (Matrix& matrix : matrices_) {
      const std::size_t count = matrix.power.numbers_of_q();
      std::ranges::copy(matrix.power.decoded({q, q + count}), sum_.data() + matrix.tensor.first);
      std::ranges::copy(matrix.power.residual(), residual_.data() + matrix.tensor.first);
      q += count;
    }
    if (place_.accounts) add_up(merged_, sum_);
  }

  void step(int iteration, std::span<float> weights) override {
    compress::dense_step(step_.optimizer, iteration + 1, step_.learning_rate, weights, sum_,
                         state_);
  }
  void finish() override {}

  void save(StateWriter& to) const override {
    save_optimizer(to, state_);
    to.put_all<float>(residual_);
    to.put_all<double>(seen_);
    to.put_all<double>(merged_);
    for (const Matrix& matrix : matrices_) {
      const compress::PowerSgd::State state = matrix.power.state();
      to.put_all<float>(state.residual);
      to.put_all<float>(state.q);
      to.put(state.random);
    }
  }
  void load(StateReader& from) override {
    load_optimizer(from, state_);
    from.take_same(residual_);
    seen_ = from.take_all<double>();
    merged_ = from.take_all<double>();
    for (Matrix& matrix : matrices_) {
      compress::PowerSgd::State state;
      state.residual = from.take_all<float>();
      state.q = from.take_all<float>();
      state.random = Random{from.take<std::uint64_t>()};  // its state is its next seed
      matrix.power.restore(std::move(state));
    }
  }

  std::size_t largest_set() const override {
    return compress::kPayloadHeader + 4 * std::max(sizes_.first, sizes_.second);
  }
  std::span<const float> residual() const override { return residual_; }
  std::span<const double> gradients_seen() const override { return seen_; }
  std::span<const double> sums_seen() const override { return merged_; }

private:
  struct Matrix {
    nn::ParameterPlace tensor;
    compress::PowerSgd power;
  };
  static std::vector<std::byte> encoded(std::span<const float> numbers) {
    return compress::encode_dense(numbers, compress::DenseFormat::f32);
  }
  static std::vector<float> sum_of(std::span<const SetPayload> sets, std::size_t numbers) {
    return sum_of_dense(sets, static_cast<std::int64_t>(numbers));
  }

  PartPlace place_;
  StepSettings step_;
  LowRankNumbers sizes_;
  compress::OptimizerState state_;
  std::vector<Matrix> matrices_;
  std::vector<float> sum_, residual_;  ///< of all numbers of the part
  bool answered_ = false;              ///< the round under way is the second
  std::vector<double> seen_, merged_;
};

}  // namespace

std::unique_ptr<PartMethod> make_power_sgd(const RivalSettings& settings, const PartPlace& place,
                                           const StepSettings& step) {
  compress::check(step.optimizer);
  check_rank(settings.rank, place.tensors);
  if (place.staleness > 0)
    fail(
        "powersgd: staleness {} (a gradient would change the sum that is still to be answered). "
        "Set it to 0.",
        place.staleness);
  return std::make_unique<LowRankMethod>(settings, place, step);
}

void check_rank(int rank, std::span<const nn::ParameterPlace> tensors) {
  if (rank < 1)
    fail("powersgd: rank {} sends nothing. Give one from 1 on, as in powersgd:2.", rank);
  for (const nn::ParameterPlace& tensor : tensors) {
    const std::size_t most = std::min(tensor.rows, tensor.columns);
    if (tensor.is_matrix() && to_size(rank) > most)
      fail("powersgd: rank {} is above that of {} ({} x {}). Give one up to {}.", rank, tensor.name,
           tensor.rows, tensor.columns, most);
  }
}

LowRankNumbers low_rank_numbers(int rank, std::span<const nn::ParameterPlace> tensors) {
  LowRankNumbers numbers;
  for (const nn::ParameterPlace& tensor : tensors) {
    numbers.first += tensor.is_matrix() ? tensor.rows * to_size(rank) : tensor.count();
    if (tensor.is_matrix()) numbers.second += tensor.columns * to_size(rank);
  }
  return numbers;
}

}  // namespace longhaul::training
