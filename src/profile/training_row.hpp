#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "scenario/model.hpp"

namespace longhaul::profile {

/// What data-parallel ranks divide: nothing; the optimizer; gradients too; weights too.
#define LONGHAUL_SHARDING_KINDS(X) \
  X(none, "none") X(zero1, "zero1") X(zero2, "zero2") X(zero3, "zero3")
LONGHAUL_LISTED_ENUM(ShardingKind, LONGHAUL_SHARDING_KINDS);
/// `accumulate`: no pipeline, microbatches one after the other.
#define LONGHAUL_ROW_SCHEDULES(X) \
  X(accumulate, "accumulate")     \
  X(gpipe, "gpipe") X(one_f_one_b, "1f1b") X(interleaved, "interleaved-1f1b")
LONGHAUL_LISTED_ENUM(RowSchedule, LONGHAUL_ROW_SCHEDULES);

/// One training run: a model, how it is divided, on which machine.
struct TrainingRow {
  std::string row;  ///< its name in the file
  std::string machine;
  std::string model;
  int gpus = 1;
  int global_batch = 1;  ///< sequences of an iteration
  int micro_batch = 1;   ///< sequences
  int sequence = 1;
  int hidden = 1;
  int intermediate = 1;
  int heads = 1;
  int kv_heads = 1;
  int layers = 1;  ///< decoder layers, without embedding and head
  int vocabulary = 1;
  MlpKind mlp = MlpKind::gelu;
  PositionKind positions = PositionKind::learned;
  int tensor = 1, data = 1, pipeline = 1;  ///< t, d, p
  int chunks = 1;                          ///< v
  RowSchedule schedule = RowSchedule::one_f_one_b;
  RecomputeKind recompute = RecomputeKind::none;
  ShardingKind sharding = ShardingKind::none;
  bool sequence_parallel = false;
  AttentionKind attention = AttentionKind::plain;
  std::string precision = "fp16";
  /// Gradients that replicas sum together as soon as their layers have them (figure 5a); nullopt:
  /// all of a stage's at the end (5b).
  std::optional<Bytes> bucket{};
  std::optional<Duration> measured{};  ///< `iteration_ms`; no prediction reads it

  /// M, of each pipeline and iteration.
  [[nodiscard]] int microbatches() const { return global_batch / (data * micro_batch); }
  [[nodiscard]] double tokens() const { return double(micro_batch) * sequence; }  ///< a microbatch
  /// Weights of a decoder layer and of the whole model (embedding and head are one matrix).
  [[nodiscard]] double layer_weights() const;
  [[nodiscard]] double weights() const;
};

/// Reads a table of rows, columns in any order, others left alone. Throws Error "source:line: ..."
/// for a missing column, a value that is none, and a layout that does not divide.
[[nodiscard]] std::vector<TrainingRow> read_training_rows(std::string_view csv,
                                                          const std::string& source);

}  // namespace longhaul::profile
