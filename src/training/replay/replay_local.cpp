#include "training/replay/replay_local.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/index.hpp"
#include "training/replay/replay_choice.hpp"
#include "training/replay/replay_low_rank.hpp"
#include "training/replay/replay_rivals.hpp"

namespace longhaul::training {
namespace {

constexpr std::size_t kReplayFourBitGroup = 128;
constexpr float kReplayMostFourBits = 7;
constexpr std::size_t kReplayTileSide = 64;  ///< of SparseLoCo

}  // namespace

void round_to_fifteen(std::span<float> numbers) {
  for (std::size_t begin = 0; begin < numbers.size(); begin += kReplayFourBitGroup) {
    const std::size_t end = std::min(numbers.size(), begin + kReplayFourBitGroup);
    float largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(numbers[i]));
    const float step = largest / kReplayMostFourBits;
    for (std::size_t i = begin; i < end; ++i) {
      if (step == 0) {
        numbers[i] = 0;
        continue;
      }
      const float whole = std::nearbyint(numbers[i] / step);
      numbers[i] = std::clamp(whole, -kReplayMostFourBits, kReplayMostFourBits) * step;
    }
  }
}

ReplayLocal::ReplayLocal(nn::TensorOps& math, const ReplayInput& input)
    : input_{input}, local_{*input.local}, memory_{math, 0} {
  const double sequences =
      std::accumulate(input.batches.begin(), input.batches.end(), 0.0) * input.microbatches;
  const double targets = input.targets > 0 ? input.targets : input.shape.sequence * sequences;
  for (const int batch : input.batches) {
    nn::ModelShape shape = input.shape;
    shape.batch = batch;
    auto model = std::make_unique<ReplayModel>(math, memory_, shape, input.cuts, input.seed);
    const double own = targets / sequences * batch;
    model->set_loss_scale(static_cast<float>(1 / own));
    std::vector<float> weights(model->numbers());
    model->copy_weights(weights);
    global_ = weights;
    const ReplayStepper stepper{input.step, weights.size()};
    const auto weight = static_cast<float>(static_cast<double>(batch) * input.microbatches *
                                           static_cast<double>(input.batches.size()) / sequences);
    replicas_.push_back({std::move(model), stepper, std::move(weights), own / targets, weight});
  }
  momenta_.resize(global_.size());
  if (input.compress.exchange == SetExchange::sites && replicas_.size() > 1)
    sites_ = input.site_of_replica;
  if (local_.feedback)
    for (Alone& replica : replicas_) replica.waiting.resize(global_.size());
  if (local_.keep == 0) return;
  for (Alone& replica : replicas_) replica.waiting.resize(global_.size());
  for (const ReplayPart& part : input.parts)
    tiles_.push_back(replayed_tiles(replayed_tensors(input.shape, part.first, part.count),
                                    part.count, kReplayTileSide,
                                    kReplayTileSide * kReplayTileSide));
}

Replayed ReplayLocal::run() {
  Replayed found;
  int steps = 0;
  for (int iteration = 0; iteration < input_.iterations; ++iteration) {
    for (Alone& replica : replicas_) replica.model->begin_iteration();
    for (MicrobatchId microbatch{}; microbatch < input_.microbatches; ++microbatch) {
      for (const ReplicaId id : ids<ReplicaId>(static_cast<int>(replicas_.size())))
        step(replicas_[index(id)], id, iteration, microbatch);
      ++steps;
      for_parts_of(due(steps), &ReplayLocal::exchange);
      for_parts_of(due(steps - local_.overlap), &ReplayLocal::mix);
    }
    double loss = 0;
    for (const Alone& replica : replicas_)
      loss += static_cast<double>(replica.model->loss()) * replica.loss_share;
    found.loss.push_back(loss);
    if (input_.after) input_.after(iteration, global_);
  }
  found.weights = global_;
  for (const Alone& replica : replicas_)
    found.residuals.push_back(replica.waiting.empty() ? std::vector<float>(global_.size())
                                                      : replica.waiting);
  return found;
}

void ReplayLocal::step(Alone& replica, ReplicaId id, int iteration, MicrobatchId microbatch) {
  ReplayModel& model = *replica.model;
  model.set_weights(replica.weights);
  model.zero_gradients();
  model.run(microbatch, input_.text(iteration, id, microbatch));
  ReplaySet gradient{replica.weights.size()};
  model.copy_gradients(gradient.numbers);
  std::ranges::fill(gradient.has, std::uint8_t{1});
  for (const float number : gradient.numbers)
    if (!std::isfinite(number))
      fail(
          "a gradient of replica {} in iteration {}, microbatch {} is {} (no finite number). Take "
          "a smaller learning rate.",
          id, iteration, microbatch, number);
  replica.stepper.step(replica.weights, gradient);
}

int ReplayLocal::due(int steps) const {
  const int between = input_.microbatches / local_.fragments;
  if (steps < 1 || steps % between != 0) return -1;
  return (steps / between - 1) % local_.fragments;
}

void ReplayLocal::for_parts_of(int fragment, void (ReplayLocal::*work)(std::size_t part)) {
  for (std::size_t k = 0; k < input_.parts.size(); ++k)
    if (static_cast<int>(k) % local_.fragments == fragment) (this->*work)(k);
}

/// What a replica has gone away from the weights that all had.
std::vector<float> ReplayLocal::outer_gradient(const Alone& replica, const ReplayPart& part) const {
  std::vector<float> outer(part.count);
  for (std::size_t i = 0; i < part.count; ++i)
    outer[i] = (global_[part.first + i] - replica.weights[part.first + i]) * replica.weight;
  return outer;
}

void ReplayLocal::exchange(std::size_t number) {
  if (local_.keep > 0) return exchange_largest(number);
  const ReplayPart& part = input_.parts[number];
  std::vector<std::vector<float>> sent;
  for (Alone& replica : replicas_) {
    std::vector<float>& own = sent.emplace_back(outer_gradient(replica, part));
    for (std::size_t i = 0; local_.feedback && i < own.size(); ++i)
      own[i] = replica.waiting[part.first + i] + own[i];
    const std::vector<float> exact = own;
    if (local_.rounds) round_to_fifteen(own);
    for (std::size_t i = 0; local_.feedback && i < own.size(); ++i)
      replica.waiting[part.first + i] = exact[i] - own[i];
  }
  const std::vector<float> sum = replayed_sum(sent, sites_);
  for (std::size_t i = 0; i < part.count; ++i) {
    const float mean = sum[i] / static_cast<float>(replicas_.size());
    float& m = momenta_[part.first + i];
    m = local_.momentum * m + mean;
    float& weight = global_[part.first + i];
    weight = weight - local_.outer_rate * (mean + local_.momentum * m);
  }
}

/// SparseLoCo: what waits decays, and rounding waits, too.
void ReplayLocal::exchange_largest(std::size_t number) {
  const ReplayPart& part = input_.parts[number];
  std::vector<ReplaySet> sets;
  for (Alone& replica : replicas_) {
    const std::span<float> waiting = std::span{replica.waiting}.subspan(part.first, part.count);
    const std::vector<float> outer = outer_gradient(replica, part);
    for (std::size_t i = 0; i < part.count; ++i) waiting[i] = waiting[i] * local_.decay + outer[i];
    ReplaySet& set = sets.emplace_back(taken_largest(number, waiting));
    std::vector<float> levels = set.kept();
    round_to_four_levels(levels);
    auto next = levels.begin();
    for (std::size_t i = 0; i < part.count; ++i) {
      if (set.has[i] == 0) continue;
      waiting[i] = waiting[i] + (set.numbers[i] - *next);
      set.numbers[i] = *next++;
    }
  }
  const ReplaySet sum = sum_of_sets(sets);
  const float rate = local_.outer_rate / static_cast<float>(replicas_.size());
  for (std::size_t i = 0; i < part.count; ++i)
    if (sum.has[i] != 0) global_[part.first + i] = global_[part.first + i] - rate * sum.numbers[i];
}

ReplaySet ReplayLocal::taken_largest(std::size_t number, std::span<float> waiting) const {
  GradientCompression largest;
  largest.method = CompressMethod::topk;
  ReplaySet all{waiting.size()};
  for (const ReplayTile& tile : tiles_[number]) {
    std::vector<float> numbers;
    for (const std::size_t place : tile.places) numbers.push_back(waiting[place]);
    ReplayChooser chooser{largest, numbers.size(), local_.keep, 0};
    const ReplaySet set = chooser.take(numbers);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      waiting[tile.places[i]] = numbers[i];
      all.numbers[tile.places[i]] = set.numbers[i];
      all.has[tile.places[i]] = set.has[i];
    }
  }
  return all;
}

void ReplayLocal::mix(std::size_t number) {
  const ReplayPart& part = input_.parts[number];
  const float own = local_.overlap > 0 ? local_.mixing : 0;
  for (Alone& replica : replicas_)
    for (std::size_t i = part.first; i < part.first + part.count; ++i)
      replica.weights[i] =
          own == 0 ? global_[i] : own * replica.weights[i] + (1 - own) * global_[i];
}

}  // namespace longhaul::training
