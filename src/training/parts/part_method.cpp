#include "training/parts/part_method.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/kept_share.hpp"
#include "compress/optimizer/sparse_optimizer.hpp"
#include "compress/select/sparsifier.hpp"
#include "compress/wire/dense.hpp"
#include "compress/wire/values.hpp"
#include "compress/wire/wire.hpp"

namespace longhaul::training {
namespace {

compress::DenseFormat dense_format(CompressMethod method) {
  if (method == CompressMethod::fp16) return compress::DenseFormat::fp16;
  return method == CompressMethod::int8 ? compress::DenseFormat::int8 : compress::DenseFormat::f32;
}

compress::Method sparse_method(CompressMethod method) {
  switch (method) {
    case CompressMethod::threshold: return compress::Method::threshold;
    case CompressMethod::topk: return compress::Method::topk;
    case CompressMethod::randomk: return compress::Method::randomk;
    default: return compress::Method::block;
  }
}

/// `sets` of a split share make up what is kept together.
compress::Settings sparse_settings(const GradientCompression& asked, int sets) {
  compress::Settings settings;
  settings.method = sparse_method(asked.method);
  settings.keep = asked.keep / (asked.share == KeptShare::split ? sets : 1);
  settings.block = settings.method == compress::Method::topk ? 1 : asked.block;
  settings.values = static_cast<compress::ValueFormat>(asked.values);
  settings.index = static_cast<compress::IndexFormat>(asked.index);
  return settings;
}
static_assert(static_cast<int>(SetValues::int8) == static_cast<int>(compress::ValueFormat::int8));
static_assert(static_cast<int>(SetIndex::gaps) == static_cast<int>(compress::IndexFormat::gaps));

/// All numbers travel; nothing waits.
class DenseMethod final : public PartMethod {
public:
  DenseMethod(compress::DenseFormat format, const PartPlace& place, const StepSettings& step)
      : format_{format},
        place_{place},
        step_{step},
        state_{compress::fresh_state(step.optimizer, place.numbers, 1)} {}

  std::vector<std::byte> own_set(int /*iteration*/, std::span<const float> gradient) override {
    compress::require_finite(gradient);
    if (place_.accounts) add_up(seen_, gradient);
    return compress::encode_dense(gradient, format_);
  }
  std::vector<std::byte> site_set(int /*iteration*/, std::span<const SetPayload> sets) override {
    return compress::encode_dense(sum_of_dense(sets, place_.numbers), format_);
  }
  void merge(int /*iteration*/, std::span<const SetPayload> sets) override {
    sum_ = sum_of_dense(sets, place_.numbers);
    if (place_.accounts) add_up(merged_, sum_);
  }
  void step(int iteration, std::span<float> weights) override {
    compress::dense_step(step_.optimizer, iteration + 1, step_.learning_rate, weights, sum_,
                         state_);
  }
  void finish() override {}
  void save(StateWriter& to) const override {
    save_optimizer(to, state_);
    to.put_all<double>(seen_);
    to.put_all<double>(merged_);
  }
  void load(StateReader& from) override {
    load_optimizer(from, state_);
    seen_ = from.take_all<double>();
    merged_ = from.take_all<double>();
  }
  std::span<const float> residual() const override { return {}; }
  std::span<const double> gradients_seen() const override {
    return format_ == compress::DenseFormat::f32 ? seen_ : std::span<const double>{};
  }
  std::span<const double> sums_seen() const override { return merged_; }
  std::size_t largest_set() const override {
    const auto numbers = static_cast<std::size_t>(place_.numbers);
    return compress::kPayloadHeader + 4 * numbers + 4 * (numbers / compress::kScaleGroup + 1);
  }

private:
  compress::DenseFormat format_;
  PartPlace place_;
  StepSettings step_;
  compress::OptimizerState state_;
  std::vector<float> sum_;
  std::vector<double> seen_, merged_;
};

/// A sparsifier chooses what travels; the rest waits, where there is feedback.
class SparseMethod final : public PartMethod {
public:
  SparseMethod(const GradientCompression& asked, const PartPlace& place, const StepSettings& step)
      : asked_{asked},
        place_{place},
        step_{step},
        settings_{sparse_settings(asked, place.replicas)},
        own_{settings_, place.numbers},
        site_{sparse_settings(asked, place.sites), place.numbers},
        optimizer_{step.optimizer, place.numbers, settings_.block},
        residual_(asked.feedback ? static_cast<std::size_t>(place.numbers) : 0) {}

  void keep_from(int iteration, double keep) override {
    const std::lock_guard lock{mutex_};
    keeps_[iteration] = keep;
    largest_keep_ = std::max(largest_keep_, keep);
  }

  std::vector<std::byte> own_set(int iteration, std::span<const float> gradient) override {
    own_.set_keep(keep_in(iteration, place_.replicas));
    if (!asked_.feedback) return encoded(own_.take_without_feedback(gradient));
    if (place_.accounts) add_up(seen_, gradient);
    take_in_what_sites_left(iteration);
    return encoded(own_.take(gradient, residual_));
  }

  std::vector<std::byte> site_set(int iteration, std::span<const SetPayload> sets) override {
    std::vector<float> rest(static_cast<std::size_t>(place_.numbers));
    compress::add_to(rest, sum_of(sets));
    site_.set_keep(keep_in(iteration, place_.sites));
    std::vector<std::byte> payload = encoded(site_.take(rest));
    if (asked_.feedback) {
      const std::lock_guard lock{mutex_};
      // The first own_set() that surely comes after: of the iteration whose F waits for this
      // update.
      left_[iteration + 1 + place_.staleness] = std::move(rest);
    }
    return payload;
  }

  void merge(int /*iteration*/, std::span<const SetPayload> sets) override {
    sum_ = sum_of(sets);
    if (!asked_.feedback || !place_.accounts) return;
    merged_.resize(static_cast<std::size_t>(place_.numbers));
    compress::each_block(sum_, [&](std::size_t place, std::size_t at, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i)
        merged_[place + i] += static_cast<double>(sum_.values[at + i]);
    });
  }
  void step(int /*iteration*/, std::span<float> weights) override {
    optimizer_.step(weights, sum_, step_.learning_rate);
  }
  [[nodiscard]] CatchUp catch_up() const override {
    if (step_.optimizer.lazy == compress::LazyUpdate::skip) return {};
    return
        [as_dense = optimizer_](std::span<float> weights) mutable { as_dense.catch_up(weights); };
  }
  void finish() override { take_in_what_sites_left(std::numeric_limits<int>::max()); }

  void save(StateWriter& to) const override {
    to.put(own_.keep());
    to.put(own_.state());
    to.put(site_.keep());
    to.put(site_.state());
    save_optimizer(to, optimizer_.state());
    to.put(optimizer_.steps());
    to.put_all<float>(residual_);
    to.put_all<double>(seen_);
    to.put_all<double>(merged_);
    to.put(static_cast<std::uint64_t>(left_.size()));
    for (const auto& [iteration, rest] : left_) {
      to.put(iteration);
      to.put_all<float>(rest);
    }
  }
  void load(StateReader& from) override {
    load_sparsifier(own_, place_.replicas, from);
    load_sparsifier(site_, place_.sites, from);
    compress::OptimizerState state = optimizer_.state();
    load_optimizer(from, state);
    optimizer_.restore(std::move(state), from.take<std::int64_t>(), step_.learning_rate);
    from.take_same(residual_);
    seen_ = from.take_all<double>();
    merged_ = from.take_all<double>();
    for (auto count = from.take<std::uint64_t>(); count > 0; --count) {
      const int iteration = from.take<int>();
      left_[iteration] = from.take_all<float>();
    }
  }
  std::span<const float> residual() const override { return residual_; }
  std::span<const double> gradients_seen() const override { return seen_; }
  std::span<const double> sums_seen() const override { return merged_; }
  /// A place of "gaps" takes 5 bytes at most, one of "coo32" 4 bytes a number.
  std::size_t largest_set() const override {
    const auto block = static_cast<std::size_t>(settings_.block);
    const double share =
        largest_keep_ /
        (asked_.share == KeptShare::split ? std::min(place_.replicas, place_.sites) : 1);
    const auto kept =
        static_cast<std::size_t>(blocks_to_keep(place_.numbers, share, settings_.block)) * block;
    const auto stretches =
        static_cast<std::size_t>(place_.numbers / compress::kStretch) + 1;  // of coo16
    return compress::kPayloadHeader + 4 * stretches + 9 * kept +
           4 * (kept / compress::kScaleGroup + 1);
  }

private:
  /// Of one of `sets` that make up what is kept together.
  [[nodiscard]] double keep_in(int iteration, int sets) {
    const std::lock_guard lock{mutex_};
    const auto next = keeps_.upper_bound(iteration);
    const double keep = next == keeps_.begin() ? asked_.keep : std::prev(next)->second;
    return keep / (asked_.share == KeptShare::split ? sets : 1);
  }
  void load_sparsifier(compress::Sparsifier& sparsifier, int sets, StateReader& from) const {
    compress::Settings settings = sparse_settings(asked_, sets);
    settings.keep = from.take<double>();
    sparsifier = {settings, place_.numbers, from.take<compress::SparsifierState>()};
  }
  [[nodiscard]] std::vector<std::byte> encoded(const compress::SparseSet& set) const {
    return compress::encode(set, settings_.index, settings_.values);
  }
  [[nodiscard]] compress::SparseSet sum_of(std::span<const SetPayload> sets) const {
    std::vector<compress::SparseSet> decoded;
    decoded.reserve(sets.size());
    for (const SetPayload& set : sets)
      decoded.push_back(
          compress::decode(set.payload, {set.source, place_.numbers, settings_.block}));
    return compress::merge(decoded);
  }
  void take_in_what_sites_left(int iteration) {
    const std::lock_guard lock{mutex_};
    while (!left_.empty() && left_.begin()->first <= iteration) {
      const std::vector<float>& rest = left_.begin()->second;
      for (std::size_t i = 0; i < rest.size(); ++i) residual_[i] += rest[i];
      left_.erase(left_.begin());
    }
  }

  GradientCompression asked_;
  PartPlace place_;
  StepSettings step_;
  compress::Settings settings_;
  compress::Sparsifier own_, site_;
  compress::SparseOptimizer optimizer_;
  std::vector<float> residual_;
  compress::SparseSet sum_;
  std::vector<double> seen_, merged_;
  std::mutex mutex_;             ///< of what sites left, and of what is kept
  std::map<int, double> keeps_;  ///< from an iteration on
  double largest_keep_ = asked_.keep;
  std::map<int, std::vector<float>> left_;  ///< by the iteration that takes it in
};

}  // namespace

void add_up(std::vector<double>& sums, std::span<const float> numbers) {
  sums.resize(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) sums[i] += static_cast<double>(numbers[i]);
}

void add_decayed(std::vector<double>& sums, std::span<const float> gradient,
                 std::span<const float> waiting, float decay) {
  const double forgotten = 1 - static_cast<double>(decay);
  sums.resize(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i)
    sums[i] += static_cast<double>(gradient[i]) - forgotten * static_cast<double>(waiting[i]);
}

void check_exchange(const GradientCompression& compress) {
  if (compress.method == CompressMethod::randomk && compress.exchange == SetExchange::sites)
    fail(
        "train.compress.method = \"randomk\" with exchange = \"sites\" (a site would draw blocks "
        "that nobody sent). Use \"ring\" or \"direct\".");
}

std::vector<std::byte> PartMethod::answer(int /*iteration*/, std::span<const SetPayload> sets) {
  fail("{}: there is one exchange of a part (what came would be answered in a second).",
       sets.empty() ? "this rank" : sets.front().source);
}
void PartMethod::keep_from(int iteration, double keep) {
  fail("{} of the numbers from iteration {} on (this method keeps what it keeps). Write every = 0.",
       keep, iteration);
}

std::unique_ptr<PartMethod> make_part_method(const GradientCompression& compress,
                                             const PartPlace& place, const StepSettings& step) {
  compress::check(step.optimizer);
  check_exchange(compress);
  if (!is_sparse(compress.method))
    return std::make_unique<DenseMethod>(dense_format(compress.method), place, step);
  return std::make_unique<SparseMethod>(compress, place, step);
}

std::vector<float> sum_of_dense(std::span<const SetPayload> sets, std::int64_t numbers) {
  std::vector<float> sum;
  for (const SetPayload& set : sets) {
    std::vector<float> one = compress::decode_dense(set.payload, {set.source, numbers});
    if (sum.empty())
      sum = std::move(one);
    else
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

}  // namespace longhaul::training
