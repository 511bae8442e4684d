#include "harness/training/train_replay.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "plan/lowering/part_lowering.hpp"
#include "schedule/network_routes.hpp"
#include "training/model_layout.hpp"
#include "training/replay/replay.hpp"

namespace longhaul::harness {
namespace {

/// Relative to the largest number of a tensor, as losses of stale runs are.
constexpr double kMostApart = 1e-5;

/// Where the replicas of a part are: their sites, and by which of them their node is led, if any
/// is.
struct PartPlaces {
  std::vector<int> sites, leaders;
};

/// Node by node, from where the scenario has the ranks: plan/ looks at groups.
std::vector<int> leaders_among(const Scenario& scenario, const std::vector<Rank>& ranks) {
  std::vector<int> leaders;
  if (scenario.train.gather == GradientGather::none) return leaders;
  const schedule::NetworkRoutes routes{scenario};
  for (const Rank rank : ranks) {
    int leader = 0;
    while (ranks[to_size(leader)] != rank &&
           (scenario.datacenter_of(ranks[to_size(leader)]) != scenario.datacenter_of(rank) ||
            routes.node_of(ranks[to_size(leader)]) != routes.node_of(rank)))
      ++leader;
    leaders.push_back(leader);
  }
  return leaders;
}

/// Of each part of the model, in its order.
std::vector<PartPlaces> places_of_parts(const TrainRank& rank) {
  std::map<int, PartPlaces> by_number;
  for (const DeviceId device : rank.schedule().device_ids()) {
    std::vector<Rank> ranks;
    PartPlaces places;
    for (const ReplicaId replica : rank.plan().replica_ids()) {
      ranks.push_back(rank.scenario().rank(replica, device, 0));
      places.sites.push_back(number(rank.scenario().datacenter_of(ranks.back())));
    }
    places.leaders = leaders_among(rank.scenario(), ranks);
    for (const plan::TrainedPart& part : plan::trained_parts(rank.schedule(), ReplicaId{0}, device))
      by_number[part.number] = places;
  }
  std::vector<PartPlaces> all;
  for (auto& [number, places] : by_number) all.push_back(std::move(places));
  return all;
}

training::StepRule rule_of(const compress::OptimizerSettings& settings, double learning_rate) {
  training::StepRule rule;
  rule.kind = from_string<training::StepKind>(to_string(settings.rule)).value();
  rule.lazy = from_string<training::LazySteps>(to_string(settings.lazy)).value();
  rule.learning_rate = static_cast<float>(learning_rate);
  rule.momentum = settings.momentum;
  rule.beta1 = settings.beta1;
  rule.beta2 = settings.beta2;
  rule.epsilon = settings.epsilon;
  rule.weight_decay = settings.weight_decay;
  return rule;
}

/// The largest difference, relative to the largest number of each tensor.
double apart(std::span<const float> ones, std::span<const float> others,
             std::span<const training::ReplicaWork::Range> tensors) {
  double most = 0;
  for (const auto& [first, count] : tensors) {
    double largest = 0, difference = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      if (!std::isfinite(ones[i]) || !std::isfinite(others[i]))
        return std::numeric_limits<double>::infinity();
      largest = std::max(largest, std::fabs(static_cast<double>(ones[i])));
      difference = std::max(
          difference, std::fabs(static_cast<double>(ones[i]) - static_cast<double>(others[i])));
    }
    if (difference > 0) most = std::max(most, largest > 0 ? difference / largest : 1);
  }
  return most;
}

/// This rank's numbers that wait to be sent; zeros where nothing does.
std::vector<float> residual_of(const TrainRank& rank) {
  if (rank.work() == nullptr) return {};
  const training::ReplicaWork& work = *rank.work();
  std::vector<float> all = work.weights();
  std::ranges::fill(all, 0.0F);
  for (std::size_t p = 0; p < work.ranges().size(); ++p)
    std::ranges::copy(work.residual(p),
                      all.begin() + static_cast<std::ptrdiff_t>(work.ranges()[p].first));
  return all;
}

/// Sites sum P, Q and outer gradients as they sum dense sets; local steps are of a replica's own
/// microbatches.
void add_rival(const training::RivalSettings& rival, training::ReplayInput& input) {
  input.rank = rival.rank;
  if (const auto own = from_string<training::ReplayedRival>(to_string(rival.rival)))
    input.rival = {*own, rival.keep, rival.momentum, rival.decay, rival.warm_up};
  if (!training::steps_locally(rival.rival)) return;
  training::ReplayLocalSteps& local = input.local.emplace();
  local.outer_rate = rival.outer_rate;
  local.momentum = rival.momentum;
  local.fragments = rival.fragments;
  local.overlap = rival.overlap;
  local.mixing = rival.mixing;
  local.rounds = rival.bits == training::kFourBits;
  local.feedback = rival.feedback;
  if (rival.rival != training::Rival::sparseloco) return;
  local.keep = rival.keep;
  local.decay = rival.decay;
}

/// Chunks of one rank hand on what they make as it is.
training::ReplayCuts cuts_of(const TrainRank& rank, const ActivationCompression& activations) {
  const Schedule& schedule = rank.schedule();
  const std::vector<nn::LayerRange> layers = training::layers_of_stages(schedule, rank.scenario());
  training::ReplayCuts cuts;
  cuts.travels = activations;
  for (const ChunkId chunk : schedule.chunk_ids()) {
    if (schedule.is_last(chunk)) break;
    if (schedule.device_of_chunk[chunk] == schedule.device_of_chunk[next(chunk)]) continue;
    const nn::LayerRange& own = layers[at(schedule.stage_of(chunk))];
    cuts.after.push_back(own.first + own.count);
  }
  return cuts;
}

training::ReplayInput input_of(const TrainRank& rank, const TrainRequest& request,
                               const TrainCurve& curve) {
  training::ReplayInput input;
  input.shape = training::model_shape(rank.scenario());
  input.seed = rank.scenario().run.seed;
  input.batches = rank.samples().batches();
  input.microbatches = rank.scenario().parallel.microbatches;
  input.text = rank.samples().text(request.data);
  input.compress = rank.scenario().train.compress;
  input.step = rule_of(request.method->optimizer, request.learning_rate);
  input.staleness = rank.scenario().train.staleness;
  input.targets = rank.targets();
  input.iterations = request.iterations;
  if (curve.adaptation)
    for (const planner::Adaptation& made : curve.adaptation->decisions)
      input.changes.push_back({made.iteration, made.setting.batch,
                               1 - made.setting.compression_rate, rank.targets(made.iteration)});
  if (const auto& activations = rank.scenario().train.activations)
    input.cuts = cuts_of(rank, *activations);
  if (request.method->rival) add_rival(*request.method->rival, input);
  if (!curve.versions.empty())
    input.version = [&curve](int iteration, ReplicaId replica, int part) {
      return iteration - curve.versions[to_size(iteration)][index(replica)][to_size(part)];
    };
  return input;
}

/// Parts of the model as they are sent; of Espresso each piece of one by itself.
void add_parts(const TrainRank& rank, std::span<const training::ReplicaWork::Range> parts,
               training::ReplayInput& input) {
  const std::vector<PartPlaces> places = places_of_parts(rank);
  LONGHAUL_ASSERT(places.size() == parts.size(), "{} and {} parts", places.size(), parts.size());
  input.site_of_replica = places.front().sites;
  std::vector<int> part_of_piece;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<training::PartPiece> pieces{{0, static_cast<std::int64_t>(parts[p].count)}};
    if (!rank.choices().empty()) pieces = rank.choices()[p].pieces;
    for (const training::PartPiece& piece : pieces) {
      input.parts.push_back({parts[p].first + to_size(piece.first), to_size(piece.numbers),
                             places[p].sites, places[p].leaders, static_cast<int>(p)});
      if (!rank.choices().empty()) input.methods.push_back(piece.method);
      part_of_piece.push_back(static_cast<int>(p));
    }
  }
  if (rank.choices().empty() || !input.version) return;
  input.version = [of_part = std::move(input.version), part_of_piece = std::move(part_of_piece)](
                      int iteration, ReplicaId replica, int piece) {
    return of_part(iteration, replica, part_of_piece[to_size(piece)]);
  };
}

}  // namespace

std::optional<ReplayResult> replay_curve(const engine::Ranks& ranks, const TrainRank& rank,
                                         const TrainRequest& request, const WholeModel& whole,
                                         const TrainCurve& curve) {
  const std::vector<training::ReplicaWork::Range> parts = whole.parts(), tensors = whole.tensors();
  const auto weights = whole.join_all<float>(rank.weights());
  const auto residuals = whole.join_all<float>(residual_of(rank));
  if (!ranks.is_first()) return std::nullopt;
  training::ReplayInput input = input_of(rank, request, curve);
  add_parts(rank, parts, input);
  const auto math = nn::make_cpu_math();
  const training::Replayed again = training::replay(*math, input);
  ReplayResult result;
  for (std::size_t r = 0; r < weights.size(); ++r)
    result.largest_difference =
        std::max({result.largest_difference, apart(weights[r], again.weights, tensors),
                  apart(residuals[r], again.residuals[r], tensors)});
  result.losses_equal = again.loss == curve.losses;
  for (std::size_t i = 0; i < again.loss.size(); ++i)
    result.largest_difference =
        std::max(result.largest_difference,
                 std::fabs(again.loss[i] - curve.losses[i]) / std::fabs(again.loss[i]));
  // Exact lazy steps are a series here and played one by one there.
  const bool same_bits = rank.scenario().train.staleness == 0 &&
                         request.method->optimizer.lazy == compress::LazyUpdate::skip;
  result.equal = result.largest_difference <= kMostApart && (result.losses_equal || !same_bits);
  return result;
}

}  // namespace longhaul::harness
