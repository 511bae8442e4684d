#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "base/vocabulary.hpp"

namespace longhaul {

/// How replicas sum the gradients of a stage: not at all; an all-reduce after its last W; ZeRO-1's
/// reduce-scatter after the last W and all-gather of weights before the first F; CrossPipe's
/// estimate for two datacenters (appendix E: 2 latencies + bytes of the weights at the slowest
/// rate); Atlas' (footnote 1: an all-reduce without latencies, 2 (n-1)/n bytes / slowest rate);
/// ZeRO-3's, where `shard` replicas hold one copy of the weights together: gathered from them
/// before the first F and kept until the last W, gradients scattered over them and then summed with
/// the other copies' (hybrid sharding); ZeRO-2's, whose messages between whole stages are ZeRO-1's;
/// part by part, each compressed, exchanged and updated beside the blocks (Training).
#define LONGHAUL_GRADIENT_SYNCS(X)    \
  X(none, "none")                     \
  X(all_reduce, "all-reduce")         \
  X(zero1, "zero1")                   \
  X(two_datacenter, "two-datacenter") \
  X(ring_rate, "ring-rate")           \
  X(zero3, "zero3")                   \
  X(zero2,                            \
    "zero"                            \
    "2")                              \
  X(compressed, "compressed")
LONGHAUL_LISTED_ENUM(GradientSync, LONGHAUL_GRADIENT_SYNCS);

/// Does each replica step its part of all weights, and gathers those of the others?
[[nodiscard]] constexpr bool divides_optimizer(GradientSync sync) {
  return sync == GradientSync::zero1 || sync == GradientSync::zero2;
}

/// What a replica sends of the gradients of a part: all numbers, as f32, as two bytes or as one;
/// or those of the blocks with the largest mean magnitude, those above a threshold, the largest, or
/// some at random.
#define LONGHAUL_DENSE_METHODS(X) X(none, "none") X(fp16, "fp16") X(int8, "int8")
#define LONGHAUL_BLOCK_METHODS(X) X(block, "block") X(threshold, "threshold")
#define LONGHAUL_NUMBER_METHODS(X) X(topk, "topk") X(randomk, "randomk")
#define LONGHAUL_COMPRESS_METHODS(X) \
  LONGHAUL_DENSE_METHODS(X) LONGHAUL_BLOCK_METHODS(X) LONGHAUL_NUMBER_METHODS(X)
LONGHAUL_LISTED_ENUM(CompressMethod, LONGHAUL_COMPRESS_METHODS);
/// Does it send some numbers and say which?
[[nodiscard]] constexpr bool is_sparse(CompressMethod method) {
  return method >= CompressMethod::block;
}

/// How numbers of a set are written, and their places.
#define LONGHAUL_SET_VALUES(X) X(f32, "f32") X(bf16, "bf16") X(int8, "int8")
LONGHAUL_LISTED_ENUM(SetValues, LONGHAUL_SET_VALUES);
#define LONGHAUL_SET_INDEXES(X) X(coo32, "coo32") X(coo16, "coo16") X(gaps, "gaps")
LONGHAUL_LISTED_ENUM(SetIndex, LONGHAUL_SET_INDEXES);

/// How replicas exchange sets: handed on N-1 times around a ring; each to each; or summed in the
/// datacenter, chosen anew, exchanged once between datacenters and spread inside.
#define LONGHAUL_SET_EXCHANGES(X) X(ring, "ring") X(direct, "direct") X(sites, "sites")
LONGHAUL_LISTED_ENUM(SetExchange, LONGHAUL_SET_EXCHANGES);

/// `keep` is of all replicas together, or of each.
#define LONGHAUL_KEPT_SHARES(X) X(split, "split") X(each, "each")
LONGHAUL_LISTED_ENUM(KeptShare, LONGHAUL_KEPT_SHARES);

/// Whose gradients are summed before they are compressed: each replica's own stay apart, or those
/// of the replicas of a node ([[node]]) become one, which steps for all of them.
#define LONGHAUL_GRADIENT_GATHERS(X) X(none, "none") X(node, "node")
LONGHAUL_LISTED_ENUM(GradientGather, LONGHAUL_GRADIENT_GATHERS);

/// [train.compress]
struct GradientCompression {
  CompressMethod method = CompressMethod::block;
  double keep = 0.01;  ///< of the numbers of a part, above 0, at most 1
  int block = 16;      ///< numbers of a block: 1, 2, 4, 8 or 16
  bool feedback = true;
  SetValues values = SetValues::f32;
  SetIndex index = SetIndex::coo32;
  SetExchange exchange = SetExchange::ring;
  KeptShare share = KeptShare::split;
  friend bool operator==(const GradientCompression&, const GradientCompression&) = default;
};

/// What stages of a pipeline send each other activations and their gradients as: all numbers, or
/// the largest of them as bf16, each with its place.
#define LONGHAUL_ACTIVATION_FORMATS(X) X(f32, "f32") X(bf16, "bf16") X(int8, "int8") X(topk, "topk")
LONGHAUL_LISTED_ENUM(ActivationFormat, LONGHAUL_ACTIVATION_FORMATS);

/// What becomes of the numbers that `topk` leaves out, by message: of each microbatch, stage and
/// direction, from one iteration to the next. They are lost; they are added to the next message; or
/// both sides remember what has arrived, and the largest differences from that are sent.
#define LONGHAUL_ACTIVATION_FEEDBACKS(X) \
  X(none, "none") X(residual, "residual") X(difference, "difference")
LONGHAUL_LISTED_ENUM(ActivationFeedback, LONGHAUL_ACTIVATION_FEEDBACKS);

struct ActivationCompression {
  ActivationFormat format = ActivationFormat::f32;
  double keep = 0.1;  ///< of the numbers of a message, where `topk`: above 0, at most 1
  ActivationFeedback feedback = ActivationFeedback::difference;  ///< of `topk`
  friend bool operator==(const ActivationCompression&, const ActivationCompression&) = default;
};

/// Times of a part on its host: of each part in the order of the model, one for all, or none: no
/// time. [train.costs]
struct PartCosts {
  std::vector<Duration> copy_out, gather, compress, merge, optimize, copy_in;
  friend bool operator==(const PartCosts&, const PartCosts&) = default;
};
inline constexpr std::vector<Duration> PartCosts::*kPartCosts[] = {
    &PartCosts::copy_out, &PartCosts::gather,   &PartCosts::compress,
    &PartCosts::merge,    &PartCosts::optimize, &PartCosts::copy_in};
inline constexpr const char* kPartCostNames[] = {"copy_out", "gather",   "compress",
                                                 "merge",    "optimize", "copy_in"};

/// The ground on which a controller estimates the bandwidth: its ranks' idle time (the paper), or
/// the transfers that links have seen.
#define LONGHAUL_BANDWIDTH_ESTIMATES(X) X(idle, "idle") X(links, "links")
LONGHAUL_LISTED_ENUM(BandwidthEstimate, LONGHAUL_BANDWIDTH_ESTIMATES);

/// What a controller changes: batches and the compression rate, as the paper's does; the rate
/// alone; or nothing, so that it only says what a run is worth (StellaTrain 5.2 compares the
/// three).
#define LONGHAUL_ADAPTED_SETTINGS(X) X(both, "both") X(rate, "rate") X(nothing, "nothing")
LONGHAUL_LISTED_ENUM(AdaptedSettings, LONGHAUL_ADAPTED_SETTINGS);

/// [train.adapt]: batch and compression rate chosen anew while a run goes on.
struct TrainingAdaptation {
  int every = 0;  ///< iterations; 0: never
  BandwidthEstimate estimate = BandwidthEstimate::idle;
  AdaptedSettings changes = AdaptedSettings::both;
  std::optional<double> lambda{};  ///< nullopt: Training::lambda
  double scale = 1;                ///< of g
  std::string probes{};            ///< the path of a file of measured ones; empty: none
  int most_batch = 0;              ///< of a replica, that its memory holds; 0: not known
};

#define LONGHAUL_TARGET_KINDS(X) X(loss, "loss") X(error, "error")
LONGHAUL_LISTED_ENUM(TargetKind, LONGHAUL_TARGET_KINDS);
/// A validation loss or error to reach.
struct TrainingTarget {
  TargetKind kind = TargetKind::loss;
  double value = 0;
  friend bool operator==(const TrainingTarget&, const TrainingTarget&) = default;
};

/// How replicas train together where GradientSync::compressed: in parts, each of which is copied,
/// compressed, sent and updated by itself. [train]
struct Training {
  int parts = 1;                  ///< of the blocks of a replica, for schedule stella
  std::vector<int> batch;         ///< samples of each replica; one each where none is given
  int staleness = 0;              ///< s: F of iteration n needs the update of iteration n-1-s
  Serve serve = Serve::deadline;  ///< of lanes out, host and in, and of links: or arrival
  int host_threads = 1;
  int buffers = 2;      ///< of a part's weights; 1: copy_in waits for the part's B
  int local_steps = 1;  ///< iterations between two exchanges
  GradientGather gather = GradientGather::none;
  std::optional<Bytes> message{};  ///< of a set of a part on the wire, instead of the method's
  std::string preset{};            ///< of training_presets(); empty: none
  std::string stands_for{};        ///< likewise: sizes on the wire are as if of that model
  double lambda = 0;  ///< weight of the spread of iteration times (StellaTrain, equation 1)
  std::optional<TrainingTarget> target{};
  GradientCompression compress{};
  std::optional<ActivationCompression> activations{};  ///< none: as they are
  PartCosts costs{};
  TrainingAdaptation adapt{};
};

/// A batch below `alpha` takes as long as alpha; `beta` samples a second beyond (StellaTrain,
/// table 2).
struct GpuThroughput {
  double alpha = 0;
  double beta = 0;
  /// F and B of a batch; F is a third of it.
  [[nodiscard]] Duration time_of(double batch) const {
    return Duration{std::llround(1e9 * std::max(batch, alpha) / beta)};
  }
};

}  // namespace longhaul
