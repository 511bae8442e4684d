#include "training/replay/replay.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <numeric>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/kept_share.hpp"
#include "nn/layers/chunk.hpp"
#include "training/replay/replay_exchange.hpp"
#include "training/replay/replay_local.hpp"
#include "training/replay/replay_low_rank.hpp"
#include "training/replay/replay_model.hpp"
#include "training/replay/replay_nodes.hpp"

namespace longhaul::training {
namespace {

constexpr std::size_t kVersionsHeld = 16;

void check_replay(const ReplayInput& input) {
  if (input.batches.empty() || input.batches.size() != input.site_of_replica.size())
    fail("{} batches and {} sites (each replica has one of both). Give as many.",
         input.batches.size(), input.site_of_replica.size());
  if (input.microbatches < 1 || !input.text)
    fail("{} microbatches{} (a replica computes something). Give 1 or more, and a text.",
         input.microbatches, input.text ? "" : " without a text");
  if (!is_kept_share(input.compress.keep))
    fail("keep is {} (a share of the numbers). Give one above 0 and at most 1.",
         input.compress.keep);
  if (!is_kept_block(input.compress.block))
    fail("block is {} (numbers that are kept together). Give 1, 2, 4, 8 or 16.",
         input.compress.block);
  check(input.step);
  if (input.rank > 0 && input.staleness > 0)
    fail("staleness is {} (factors are of the sum that waits). Give 0.", input.staleness);
  for (const ReplayChange& change : input.changes)
    if (change.batches.size() != input.batches.size() || !is_kept_share(change.keep) ||
        !(change.targets > 0) || input.rank > 0 || input.local || input.rival)
      fail(
          "from iteration {} on {} batches, {} of the numbers, {} targets (as in the rest of the "
          "run "
          "are {} batches). Give what a run can change to.",
          change.from, change.batches.size(), change.keep, change.targets, input.batches.size());
  for (const ReplayPart& part : input.parts)
    if (!part.leaders.empty() && (input.rank > 0 || input.rival || input.local))
      fail("nodes sum the gradients of a part (this method's sets are of replicas). Give none.");
  if (!input.methods.empty() && input.methods.size() != input.parts.size())
    fail("{} methods of {} parts. Give as many.", input.methods.size(), input.parts.size());
  if (!input.local) return;
  if (!input.cuts.after.empty())
    fail("local steps of {} stages (they are of replicas of one). Leave one of both out.",
         input.cuts.after.size() + 1);
  const ReplayLocalSteps& local = *input.local;
  if (local.fragments < 1 || input.microbatches % local.fragments != 0 || local.overlap < 0 ||
      local.overlap >= input.microbatches / local.fragments)
    fail("{} fragments of {} steps, mixed in {} later. Let one be over before the next begins.",
         local.fragments, input.microbatches, local.overlap);
  if (local.keep != 0 && !is_kept_share(local.keep))
    fail("local steps keep {} of the numbers. Give a share above 0 and at most 1, or 0 for all.",
         local.keep);
}

void check_parts(std::span<const ReplayPart> parts, std::size_t count, std::size_t replicas) {
  std::size_t end = 0;
  for (const ReplayPart& part : parts) {
    if (!part.sites.empty() && part.sites.size() != replicas)
      fail("a part has {} sites (there are {} replicas). Give as many, or none.", part.sites.size(),
           replicas);
    if (part.first != end || part.count == 0)
      fail(
          "a part has {} numbers from {} on (the one before ends at {}). Let parts cover the "
          "model.",
          part.count, part.first, end);
    end += part.count;
  }
  if (end != count)
    fail("parts end at {} (the model has {} numbers). Let parts cover the model.", end, count);
}

/// What must not get lost: gradients, what was stepped with, in double precision.
struct ReplayMass {
  std::vector<double> gradients, sent;

  [[nodiscard]] double lost(const std::vector<std::vector<float>>& residuals) const {
    double missing = 0, all = 0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      double left = gradients[i] - sent[i];
      for (const std::vector<float>& residual : residuals) left -= static_cast<double>(residual[i]);
      missing += left * left;
      all += gradients[i] * gradients[i];
    }
    return missing == 0 ? 0 : std::sqrt(missing) / std::sqrt(all);
  }
};

class ReplayRun {
public:
  ReplayRun(nn::TensorOps& math, const ReplayInput& input);
  [[nodiscard]] Replayed run();

private:
  [[nodiscard]] int replicas() const { return static_cast<int>(models_.size()); }
  [[nodiscard]] float gradients_of(int iteration, ReplicaId replica, std::span<float> gradients);
  void set_weights(ReplayModel& model, int iteration, ReplicaId replica);
  [[nodiscard]] const std::vector<float>& weights_after(int update, int iteration) const;
  void update(int iteration, int part, std::span<float> weights);
  [[nodiscard]] ReplaySet exchanged(int iteration, int part,
                                    std::span<const std::span<const float>> gradients);
  [[nodiscard]] std::vector<std::vector<float>> residuals() const;
  void add_low_rank(const ReplayPart& part);
  [[nodiscard]] const std::vector<int>& sites_of(const ReplayPart& part) const {
    return part.sites.empty() ? input_.site_of_replica : part.sites;
  }
  void change_to(int iteration);

  const ReplayInput& input_;
  nn::DeviceMemory memory_;
  std::vector<std::unique_ptr<ReplayModel>> models_;  ///< of each replica
  std::vector<std::vector<float>> gradients_;         ///< [replica][number], of this iteration
  std::deque<std::vector<float>> versions_;  ///< weights after the last updates; newest last
  std::vector<ReplayNodes> nodes_;           ///< of each part
  std::vector<ReplayExchange> exchanges_;    ///< of each part, or
  std::vector<ReplayLowRank> low_rank_;      ///< where the input has a rank, or
  std::vector<std::unique_ptr<ReplayRivalPart>> rivals_;  ///< where it has a rival
  std::vector<ReplayStepper> steppers_;                   ///< of each part
  ReplayMass mass_;
  std::size_t held_;  ///< versions: with one buffer twice as old ones are used
};

ReplayRun::ReplayRun(nn::TensorOps& math, const ReplayInput& input)
    : input_{input},
      memory_{math, 0},
      held_{std::max(kVersionsHeld, 2 * to_size(input.staleness) + 3)} {
  const double sequences = std::accumulate(input.batches.begin(), input.batches.end(), 0.0);
  const double tokens =
      input.targets > 0 ? input.targets : input.shape.sequence * sequences * input.microbatches;
  for (const int batch : input.batches) {
    nn::ModelShape shape = input.shape;
    shape.batch = batch;
    models_.push_back(std::make_unique<ReplayModel>(math, memory_, shape, input.cuts, input.seed));
    models_.back()->set_loss_scale(static_cast<float>(1.0 / tokens));
  }
  const std::size_t count = models_.front()->numbers();
  check_parts(input.parts, count, input.batches.size());
  models_.front()->copy_weights(versions_.emplace_back(count));
  gradients_.assign(models_.size(), std::vector<float>(count));
  mass_ = {std::vector<double>(count), std::vector<double>(count)};
  for (const ReplayPart& part : input.parts) {
    if (input.rank > 0) add_low_rank(part);
    if (input.rival)
      rivals_.push_back(make_replayed_rival(*input.rival, input.step, models_.size(), part.count,
                                            replayed_tensors(input.shape, part.first, part.count)));
    GradientCompression compress = input.compress;
    if (!input.methods.empty()) compress.method = input.methods[exchanges_.size()];
    nodes_.emplace_back(part.leaders, models_.size());
    const auto place = static_cast<int>(exchanges_.size());
    exchanges_.emplace_back(compress, nodes_.back().of_members(sites_of(part)),
                            part.number < 0 ? place : part.number, part.count, input.staleness);
    steppers_.emplace_back(input.step, part.count);
  }
}

/// Parts are of whole tensors.
void ReplayRun::add_low_rank(const ReplayPart& part) {
  const std::vector<nn::ParameterPlace> tensors =
      replayed_tensors(input_.shape, part.first, part.count);
  const bool through_sites =
      input_.compress.exchange == SetExchange::sites && input_.batches.size() > 1;
  low_rank_.emplace_back(input_.rank, tensors, sites_of(part), through_sites,
                         static_cast<int>(low_rank_.size()), part.count);
}

Replayed ReplayRun::run() {
  Replayed found;
  for (int iteration = 0; iteration < input_.iterations; ++iteration) {
    double loss = 0;
    change_to(iteration);
    for (const ReplicaId replica : ids<ReplicaId>(replicas()))
      loss += static_cast<double>(gradients_of(iteration, replica, gradients_[index(replica)]));
    found.loss.push_back(loss);
    std::vector<float> weights = versions_.back();
    for (int part = 0; part < static_cast<int>(input_.parts.size()); ++part)
      update(iteration, part, weights);
    if (input_.after) input_.after(iteration, weights);
    versions_.push_back(std::move(weights));
    if (versions_.size() > held_) versions_.pop_front();
  }
  found.weights = versions_.back();
  for (ReplayExchange& exchange : exchanges_) exchange.finish();
  found.residuals = residuals();
  if (!input_.rival && input_.methods.empty() &&
      (input_.rank > 0 || (input_.compress.feedback && is_sparse(input_.compress.method))))
    found.lost_relative = mass_.lost(found.residuals);
  return found;
}

void ReplayRun::change_to(int iteration) {
  for (const ReplayChange& change : input_.changes) {
    if (change.from != iteration) continue;
    for (std::size_t r = 0; r < models_.size(); ++r) {
      models_[r]->set_batch(change.batches[r]);
      models_[r]->set_loss_scale(static_cast<float>(1.0 / change.targets));
    }
    for (ReplayExchange& exchange : exchanges_) exchange.set_keep(change.keep);
  }
}

/// The loss of a replica, and its gradients: microbatch by microbatch, F and then B.
float ReplayRun::gradients_of(int iteration, ReplicaId replica, std::span<float> gradients) {
  ReplayModel& model = *models_[index(replica)];
  set_weights(model, iteration, replica);
  model.begin_iteration();
  for (MicrobatchId microbatch{}; microbatch < input_.microbatches; ++microbatch)
    model.run(microbatch, input_.text(iteration, replica, microbatch));
  model.copy_gradients(gradients);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (!std::isfinite(gradients[i]))
      fail(
          "gradient {} of replica {} in iteration {} is {} (no finite number). Take a smaller "
          "learning rate, or look at where it was computed.",
          i, replica, iteration, gradients[i]);
  return model.loss();
}

void ReplayRun::set_weights(ReplayModel& model, int iteration, ReplicaId replica) {
  std::vector<float> weights(versions_.back().size());
  for (std::size_t i = 0; i < input_.parts.size(); ++i) {
    const ReplayPart& part = input_.parts[i];
    const int update =
        input_.version ? input_.version(iteration, replica, static_cast<int>(i)) : iteration - 1;
    const std::span<const float> from = weights_after(update, iteration);
    std::ranges::copy(from.subspan(part.first, part.count), weights.data() + part.first);
  }
  model.set_weights(weights);
}

/// Update `iteration` - 1 is the last that was made.
const std::vector<float>& ReplayRun::weights_after(int update, int iteration) const {
  const auto held = static_cast<int>(versions_.size());
  const int place = held - iteration + update;
  if (place < 0 || place >= held)
    fail(
        "iteration {} used the weights of update {} (updates {} to {} are held). Look at the "
        "versions that were recorded.",
        iteration, update, iteration - held, iteration - 1);
  return versions_[to_size(place)];
}

void ReplayRun::update(int iteration, int part, std::span<float> weights) {
  const ReplayPart& place = input_.parts[to_size(part)];
  std::vector<std::span<const float>> gradients;
  for (const std::vector<float>& all : gradients_)
    gradients.push_back(std::span{all}.subspan(place.first, place.count));
  if (input_.rival)
    return rivals_[to_size(part)]->run(gradients, weights.subspan(place.first, place.count));
  const ReplaySet sum = input_.rank > 0 ? low_rank_[to_size(part)].run(gradients)
                                        : exchanged(iteration, part, gradients);
  for (std::size_t i = 0; i < place.count; ++i) {
    mass_.sent[place.first + i] += static_cast<double>(sum.numbers[i]);
    for (const std::span<const float> gradient : gradients)
      mass_.gradients[place.first + i] += static_cast<double>(gradient[i]);
  }
  steppers_[to_size(part)].step(weights.subspan(place.first, place.count), sum);
}

/// The sum of the sets that replicas make, or nodes.
ReplaySet ReplayRun::exchanged(int iteration, int part,
                               std::span<const std::span<const float>> gradients) {
  const ReplayNodes& nodes = nodes_[to_size(part)];
  SentSet sent;
  if (input_.sent)
    sent = [&](ReplicaId member, ReplaySet& set) {
      const auto replica = static_cast<std::int32_t>(nodes.members()[index(member)]);
      input_.sent(iteration, ReplicaId{replica}, part, set);
    };
  const std::vector<std::vector<float>> sums = nodes.sums(gradients);
  const std::vector<std::span<const float>> own(sums.begin(), sums.end());
  return exchanges_[to_size(part)].run(own, sent);
}

std::vector<std::vector<float>> ReplayRun::residuals() const {
  std::vector<std::vector<float>> all(models_.size());
  for (const ReplicaId replica : ids<ReplicaId>(replicas())) {
    std::vector<float>& whole = all[index(replica)];
    for (std::size_t k = 0; k < exchanges_.size(); ++k) {
      const std::optional<std::size_t> place = nodes_[k].place(replica);
      if (!place) {  // the one that leads its node has what waits
        whole.resize(whole.size() + input_.parts[k].count);
        continue;
      }
      const std::span<const float> part =
          input_.rival      ? rivals_[k]->residual(index(replica))
          : input_.rank > 0 ? low_rank_[k].residual(index(replica))
                            : exchanges_[k].residual(ReplicaId{static_cast<std::int32_t>(*place)});
      whole.insert(whole.end(), part.begin(), part.end());
    }
  }
  return all;
}

}  // namespace

Replayed replay(nn::TensorOps& math, const ReplayInput& input) {
  check_replay(input);
  if (input.local) return ReplayLocal{math, input}.run();
  return ReplayRun{math, input}.run();
}

}  // namespace longhaul::training
