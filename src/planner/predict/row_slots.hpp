#pragma once

#include <vector>

#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "profile/operator_times.hpp"

namespace longhaul::planner {

/// What ops of a training iteration may be.
#define LONGHAUL_SLOT_KINDS(X) \
  X(forward, "forward")        \
  X(backward, "backward")      \
  X(message, "message")        \
  X(latency, "latency")        \
  X(reduce, "reduce") X(tied, "tied") X(step, "step") X(gather, "gather") X(scatter, "scatter")
LONGHAUL_LISTED_ENUM(SlotKind, LONGHAUL_SLOT_KINDS);

/// Ops of one row that take the same time: those of a chunk's forward, say. Of a reduction `layers`
/// and ends are those of the backward block before it, beside which buckets are summed: its time is
/// what lies after that block. Without layers and ends all does.
struct Slot {
  SlotKind kind = SlotKind::forward;
  double layers = 0;       ///< of forward and backward; of reduce: see below
  bool embedding = false;  ///< the embedding is of it
  bool head = false;
  int stage = 0;
  double overheads = 0;                ///< Parameter::microbatch_time, so many of it
  double weights = 0;                  ///< of a GPU: reduced, stepped, gathered or scattered
  double gathered = 0, scattered = 0;  ///< weights that a collective moves beside this block
};

/// Time of a slot by cause, in ns.
struct SlotTime {
  double compute = 0, tensor = 0, pipeline = 0, data = 0, optimizer = 0;
  [[nodiscard]] Duration total() const;
};

/// Weights of a GPU: of so many layers, and of the embedding.
[[nodiscard]] double layer_weights_of_gpu(const profile::TrainingRow& row, double layers);
[[nodiscard]] double embedding_weights_of_gpu(const profile::TrainingRow& row);

[[nodiscard]] std::vector<SlotTime> slot_times(const std::vector<Slot>& slots,
                                               const profile::RowGraph& graph,
                                               const profile::ParameterValues& values);

}  // namespace longhaul::planner
