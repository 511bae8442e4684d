#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "nn/layers/text.hpp"
#include "nn/tensor_ops.hpp"
#include "scenario/training.hpp"
#include "training/replay/replay_model.hpp"
#include "training/replay/replay_rivals.hpp"
#include "training/replay/replay_set.hpp"
#include "training/replay/replay_step.hpp"

namespace longhaul::training {

/// Numbers of Chunk::all_weights() of the whole model that are exchanged and updated together.
struct ReplayPart {
  std::size_t first = 0, count = 0;
  std::vector<int> sites{};  ///< of its replicas; empty: as ReplayInput has them
  /// Of each replica the one that sums the gradients of its node (ReplayNodes); empty: each makes
  /// a set of its own. Not with a rank, a rival or local steps.
  std::vector<int> leaders{};
  int number = -1;  ///< that says which member sums for a site (ReplayExchange); -1: its place
};

/// Local SGD, DiLoCo, its streaming kin and SparseLoCo: every microbatch is a step of each replica
/// alone, with StepRule.
struct ReplayLocalSteps {
  float outer_rate = 0.7F, momentum = 0.9F;
  int fragments = 1;    ///< part k is of fragment k mod fragments
  int overlap = 0;      ///< steps between a fragment's exchange and its update
  float mixing = 0.5F;  ///< where overlap is above 0: share of its own weights that a replica keeps
  bool rounds = true;   ///< outer gradients to 4 bits
  /// SparseLoCo: so much of an outer gradient's numbers, and of those that wait, is sent, in 2 bits
  /// each; what waits decays at each exchange. 0: all are sent.
  double keep = 0;
  float decay = 1;
  bool feedback = false;  ///< what rounding to 4 bits leaves joins the next outer gradient
};

/// From an iteration on, batches and the share that is kept are others.
struct ReplayChange {
  int from = 0;
  std::vector<int> batches;
  double keep = 1;
  double targets = 0;  ///< numbers that an iteration predicts
};

/// A run to be computed again: docs/training.md, "What an iteration computes".
struct ReplayInput {
  nn::ModelShape shape;              ///< its batch is ignored: see `batches`
  std::uint64_t seed = 1;            ///< of the first weights
  std::vector<int> batches;          ///< sequences in a microbatch of each replica
  int microbatches = 1;              ///< of each replica in an iteration
  std::vector<int> site_of_replica;  ///< by a number; sites are summed in the order of these
  nn::TextSource text;               ///< of as many sequences as the replica's microbatch has
  std::vector<ReplayPart> parts;     ///< in the order of the model; they cover all numbers
  ReplayCuts cuts{};                 ///< where what stages send each other is rounded
  GradientCompression compress;
  std::vector<CompressMethod> methods{};  ///< of each part; empty: that of `compress`
  int rank = 0;                        ///< of PowerSGD; 0: `compress` says how parts are exchanged
  std::optional<ReplayRival> rival{};  ///< sets and steps of its own; not with a rank
  std::optional<ReplayLocalSteps> local{};
  StepRule step;
  int staleness = 0;   ///< iterations that what a site leaves waits for
  double targets = 0;  ///< numbers that an iteration predicts; 0: all its tokens
  int iterations = 0;
  std::vector<ReplayChange> changes{};  ///< ascending; not with a rank, a rival or local steps
  /// The update (its iteration; -1: the first weights) that F of `part` used in `iteration` on
  /// `replica`; one of the last 16. Empty: iteration - 1.
  std::function<int(int iteration, ReplicaId replica, int part)> version;
  /// Called with the master weights of the whole model after the update of each iteration. May be
  /// empty.
  std::function<void(int iteration, std::span<const float> weights)> after;
  /// Called with each set that a replica makes of its gradient, before it is summed, to compare it
  /// with that of a rank, or, in tests, to change it. May be empty.
  std::function<void(int iteration, ReplicaId replica, int part, ReplaySet& set)> sent;
};

struct Replayed {
  /// By iteration: mean loss of a token, Chunk::loss() of each replica added up in their order.
  std::vector<double> loss;
  std::vector<float> weights;                 ///< master weights after the last update
  std::vector<std::vector<float>> residuals;  ///< [replica][number]; zeros without feedback
  /// |sum of gradients - sent - residual| / |sum of gradients|: 2-norms over the numbers of the
  /// model, each summed in double precision over replicas and iterations; `sent` is what steps were
  /// taken with. None without feedback, and of dense methods,
  /// rivals and local steps.
  std::optional<double> lost_relative;
};

/// Computes a run again, on one rank and by plain code of its own: nothing of compress/ is used.
/// Each replica has all layers, with its own batch, on `math`. Throws Error where the
/// input is none of a run, a version is not held, or a gradient is not finite.
///
///     const auto math = nn::make_cpu_math();
///     const Replayed again = replay(*math, input);
[[nodiscard]] Replayed replay(nn::TensorOps& math, const ReplayInput& input);

}  // namespace longhaul::training
