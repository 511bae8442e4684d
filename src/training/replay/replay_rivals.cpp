#include "training/replay/replay_rivals.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/error.hpp"
#include "base/kept_share.hpp"
#include "training/replay/replay_choice.hpp"
#include "training/replay/replay_set.hpp"

namespace longhaul::training {
namespace {

constexpr std::size_t kReplayCosines = 64;  ///< of DeMo, along a side of a tile
constexpr double kReplayRamp[] = {0.25, 0.0625, 0.015625, 0.004, 0.001};

GradientCompression largest_numbers(double keep) {
  GradientCompression compress;
  compress.method = CompressMethod::topk;
  compress.keep = keep;
  return compress;
}

/// Deep gradient compression: momentum is gathered before numbers wait.
class ReplayDgc final : public ReplayRivalPart {
public:
  ReplayDgc(const ReplayRival& rival, const StepRule& step, std::size_t replicas, std::size_t count)
      : rival_{rival},
        rate_{step.learning_rate},
        momenta_(replicas, std::vector<float>(count)),
        waiting_{momenta_},
        choosers_(replicas, ReplayChooser{largest_numbers(rival.keep), count, rival.keep, 0}) {}

  void run(std::span<const std::span<const float>> gradients, std::span<float> weights) override {
    const double share = share_of(steps_++);
    std::vector<ReplaySet> sets;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        momenta_[r][i] = rival_.momentum * momenta_[r][i] + gradients[r][i];
        waiting_[r][i] = waiting_[r][i] + momenta_[r][i];
      }
      choosers_[r].set_share(share);
      sets.push_back(choosers_[r].take(waiting_[r]));
      for (std::size_t i = 0; i < weights.size(); ++i)
        if (share < 1 && sets.back().has[i] != 0) momenta_[r][i] = 0;
    }
    const ReplaySet sum = sum_of_sets(sets);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (sum.has[i] != 0) weights[i] = weights[i] - rate_ * sum.numbers[i];
  }
  std::span<const float> residual(std::size_t replica) const override { return waiting_[replica]; }

private:
  [[nodiscard]] double share_of(int step) const {
    if (rival_.warm_up <= 0) return rival_.keep;
    const int stage = step / rival_.warm_up;
    return stage < static_cast<int>(std::size(kReplayRamp))
               ? std::max(kReplayRamp[stage], rival_.keep)
               : rival_.keep;
  }

  ReplayRival rival_;
  float rate_;
  int steps_ = 0;
  std::vector<std::vector<float>> momenta_, waiting_;  ///< of each replica
  std::vector<ReplayChooser> choosers_;
};

/// Cosine k at place i of `size` numbers.
float cosine_at(std::size_t size, std::size_t k, std::size_t i) {
  const auto length = static_cast<double>(size);
  const double angle =
      std::numbers::pi / length * (static_cast<double>(i) + 0.5) * static_cast<double>(k);
  return static_cast<float>(std::sqrt((k == 0 ? 1 : 2) / length) * std::cos(angle));
}

std::vector<float> table_of_cosines(std::size_t size) {
  std::vector<float> table;
  for (std::size_t k = 0; k < size; ++k)
    for (std::size_t i = 0; i < size; ++i) table.push_back(cosine_at(size, k, i));
  return table;
}

/// DeMo: of each tile of the momentum the largest cosines; steps of signs.
class ReplayDemo final : public ReplayRivalPart {
public:
  ReplayDemo(const ReplayRival& rival, const StepRule& step, std::size_t replicas,
             std::size_t count, std::span<const nn::ParameterPlace> tensors)
      : decay_{rival.decay},
        rate_{step.learning_rate},
        keep_{rival.keep},
        tiles_{replayed_tiles(tensors, count, kReplayCosines, kReplayCosines)},
        momenta_(replicas, std::vector<float>(count)) {
    for (const ReplayTile& tile : tiles_) {
      cosines_ += tile.places.size();
      for (const std::size_t size : {tile.rows, tile.columns})
        if (tables_[size].empty()) tables_[size] = table_of_cosines(size);
    }
  }

  void run(std::span<const std::span<const float>> gradients, std::span<float> weights) override {
    std::vector<ReplaySet> sets;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      std::vector<float>& momentum = momenta_[r];
      for (std::size_t i = 0; i < momentum.size(); ++i)
        momentum[i] = decay_ * momentum[i] + gradients[r][i];
      ReplaySet& set = sets.emplace_back(cosines_);
      std::size_t begin = 0;
      for (const ReplayTile& tile : tiles_) {
        choose(tile, momentum, begin, set);
        begin += tile.places.size();
      }
    }
    const ReplaySet sum = sum_of_sets(sets);
    std::size_t begin = 0;
    for (const ReplayTile& tile : tiles_) {
      const std::vector<float> numbers =
          back(tile, std::span{sum.numbers}.subspan(begin, tile.places.size()));
      for (std::size_t i = 0; i < numbers.size(); ++i)
        if (numbers[i] != 0)
          weights[tile.places[i]] = weights[tile.places[i]] - (numbers[i] < 0 ? -rate_ : rate_);
      begin += tile.places.size();
    }
  }
  std::span<const float> residual(std::size_t replica) const override { return momenta_[replica]; }

private:
  /// What is kept of one tile goes into the set, and its numbers out of the momentum.
  void choose(const ReplayTile& tile, std::vector<float>& momentum, std::size_t begin,
              ReplaySet& set) const {
    const std::size_t size = tile.places.size();
    std::vector<float> cosines = there(tile, momentum);
    ReplayChooser largest{largest_numbers(keep_), size, keep_, 0};
    const ReplaySet kept = largest.take(cosines);
    std::ranges::copy(kept.numbers, set.numbers.begin() + static_cast<std::ptrdiff_t>(begin));
    std::ranges::copy(kept.has, set.has.begin() + static_cast<std::ptrdiff_t>(begin));
    const std::vector<float> numbers = back(tile, kept.numbers);
    for (std::size_t i = 0; i < size; ++i)
      momentum[tile.places[i]] = momentum[tile.places[i]] - numbers[i];
  }
  /// Cosines of a tile: of each row first, then of the columns.
  [[nodiscard]] std::vector<float> there(const ReplayTile& tile,
                                         const std::vector<float>& momentum) const {
    const std::size_t rows = tile.rows, columns = tile.columns;
    const std::vector<float>&of_rows = tables_.at(columns), &of_columns = tables_.at(rows);
    std::vector<float> between(rows * columns), cosines(rows * columns);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t l = 0; l < columns; ++l)
        for (std::size_t j = 0; j < columns; ++j)
          between[i * columns + l] =
              between[i * columns + l] +
              momentum[tile.places[i * columns + j]] * of_rows[l * columns + j];
    for (std::size_t k = 0; k < rows; ++k)
      for (std::size_t l = 0; l < columns; ++l)
        for (std::size_t i = 0; i < rows; ++i)
          cosines[k * columns + l] =
              cosines[k * columns + l] + between[i * columns + l] * of_columns[k * rows + i];
    return cosines;
  }
  /// Numbers of a tile's cosines: along rows first, added up in the order of the cosines.
  [[nodiscard]] std::vector<float> back(const ReplayTile& tile,
                                        std::span<const float> cosines) const {
    const std::size_t rows = tile.rows, columns = tile.columns;
    const std::vector<float>&of_rows = tables_.at(columns), &of_columns = tables_.at(rows);
    std::vector<float> between(rows * columns), numbers(rows * columns);
    for (std::size_t k = 0; k < rows; ++k)
      for (std::size_t l = 0; l < columns; ++l)
        for (std::size_t j = 0; cosines[k * columns + l] != 0 && j < columns; ++j)
          between[k * columns + j] =
              between[k * columns + j] + cosines[k * columns + l] * of_rows[l * columns + j];
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        for (std::size_t k = 0; k < rows; ++k)
          numbers[i * columns + j] =
              numbers[i * columns + j] + between[k * columns + j] * of_columns[k * rows + i];
    return numbers;
  }

  float decay_, rate_;
  double keep_;
  std::vector<ReplayTile> tiles_;
  std::size_t cosines_ = 0;                           ///< of all tiles
  std::map<std::size_t, std::vector<float>> tables_;  ///< by size
  std::vector<std::vector<float>> momenta_;           ///< of each replica
};

/// All numbers become their mean magnitude with their sign; what that leaves stays in `sum`.
std::vector<float> taken_by_sign(std::vector<float>& sum) {
  double mass = 0;
  for (const float number : sum) mass += std::abs(static_cast<double>(number));
  const auto magnitude = static_cast<float>(mass / static_cast<double>(sum.size()));
  std::vector<float> sent(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sent[i] = sum[i] < 0 ? -magnitude : magnitude;
    sum[i] = sum[i] - sent[i];
  }
  return sent;
}

/// 1-bit Adam: dense Adam, then signs both ways and a second moment that stays.
class ReplayOneBit final : public ReplayRivalPart {
public:
  ReplayOneBit(const ReplayRival& rival, const StepRule& step, std::size_t replicas,
               std::size_t count)
      : warm_up_{rival.warm_up},
        step_{step},
        first_(count),
        second_(count),
        server_(count),
        residuals_(replicas, std::vector<float>(count)) {}

  void run(std::span<const std::span<const float>> gradients, std::span<float> weights) override {
    if (steps_ < warm_up_)
      average(gradients);
    else
      average_by_sign(gradients);
    ++steps_;
    const double first = 1 - std::pow(static_cast<double>(step_.beta1), steps_);
    const double second =
        1 - std::pow(static_cast<double>(step_.beta2), std::min(steps_, warm_up_));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double root = std::sqrt(static_cast<double>(second_[i]) / second);
      const double step = static_cast<double>(step_.learning_rate) *
                          (static_cast<double>(first_[i]) / first) /
                          (root + static_cast<double>(step_.epsilon));
      weights[i] = weights[i] - static_cast<float>(step);
    }
  }
  std::span<const float> residual(std::size_t replica) const override {
    return residuals_[replica];
  }

private:
  void average(std::span<const std::span<const float>> gradients) {
    for (std::size_t i = 0; i < first_.size(); ++i) {
      float mean = gradients[0][i];
      for (std::size_t r = 1; r < gradients.size(); ++r) mean = mean + gradients[r][i];
      first_[i] = step_.beta1 * first_[i] + (1 - step_.beta1) * mean;
      second_[i] = step_.beta2 * second_[i] + ((1 - step_.beta2) * mean) * mean;
    }
  }
  void average_by_sign(std::span<const std::span<const float>> gradients) {
    const auto replicas = static_cast<float>(gradients.size());
    const float share = 1 / replicas;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      std::vector<float>& sum = residuals_[r];
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] =
            sum[i] + (step_.beta1 * first_[i] + ((1 - step_.beta1) * replicas) * gradients[r][i]);
      const std::vector<float> sent = taken_by_sign(sum);
      for (std::size_t i = 0; i < sum.size(); ++i) server_[i] = server_[i] + share * sent[i];
    }
    first_ = taken_by_sign(server_);
  }

  int warm_up_, steps_ = 0;
  StepRule step_;
  std::vector<float> first_, second_, server_;
  std::vector<std::vector<float>> residuals_;  ///< of each replica
};

}  // namespace

std::unique_ptr<ReplayRivalPart> make_replayed_rival(const ReplayRival& rival, const StepRule& step,
                                                     std::size_t replicas, std::size_t count,
                                                     std::span<const nn::ParameterPlace> tensors) {
  if (!is_kept_share(rival.keep))
    fail("{}: keep is {} (a share of the numbers). Give one above 0 and at most 1.",
         to_string(rival.method), rival.keep);
  for (const float factor : {rival.momentum, rival.decay})
    if (!(factor >= 0 && factor <= 1))
      fail("{}: a momentum of {} (the share that is left of it). Give one from 0 to 1.",
           to_string(rival.method), factor);
  switch (rival.method) {
    case ReplayedRival::dgc: return std::make_unique<ReplayDgc>(rival, step, replicas, count);
    case ReplayedRival::demo:
      return std::make_unique<ReplayDemo>(rival, step, replicas, count, tensors);
    case ReplayedRival::onebit: break;
  }
  if (rival.warm_up < 1)
    fail(
        "onebit: a warm-up of {} steps (its second moment divides all later ones). Give 1 or more.",
        rival.warm_up);
  return std::make_unique<ReplayOneBit>(rival, step, replicas, count);
}

void round_to_four_levels(std::span<float> numbers) {
  double all = 0, below = 0, above = 0;
  for (const float number : numbers) all += std::abs(static_cast<double>(number));
  const double mean = numbers.empty() ? 0 : all / static_cast<double>(numbers.size());
  std::size_t small = 0, large = 0;
  for (const float number : numbers) {
    const double magnitude = std::abs(static_cast<double>(number));
    if (magnitude < mean)
      ++small, below += magnitude;
    else
      ++large, above += magnitude;
  }
  const auto low = static_cast<float>(small > 0 ? below / static_cast<double>(small) : 0);
  const auto high = static_cast<float>(large > 0 ? above / static_cast<double>(large) : 0);
  for (float& number : numbers) {
    const float level = std::abs(static_cast<double>(number)) < mean ? low : high;
    number = std::signbit(number) ? -level : level;
  }
}

}  // namespace longhaul::training
