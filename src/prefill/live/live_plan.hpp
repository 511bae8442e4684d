#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "prefill/placement.hpp"
#include "prefill/play/play.hpp"
#include "prefill/prompt/kv_link.hpp"

namespace longhaul::prefill {

/// A pipeline of some served model.
struct LivePipeline {
  std::size_t model = 0;
  Pipeline pipeline;
  DatacenterId datacenter{};  ///< whose controller places prompts on it
};

/// An op of a plan that is filled while it is played.
struct LiveOp {
  /// training: `number` is its op in the plan without prefills; answer: of the controller; stage:
  /// a part of a stage's computation; arrived: the message that brings it what the stage before
  /// computed, at its receiver; other: the other side of that; slice, slice_arrived: of keys and
  /// values, at the GPU and at its decode rank; token: the first one.
  enum class Kind : std::uint8_t {
    other,
    training,
    answer,
    stage,
    arrived,
    slice,
    slice_arrived,
    token
  };
  Kind kind = Kind::other;
  std::int16_t stage = 0, part = 0;
  std::int32_t pipeline = 0;  ///< place in LivePlan::pipelines
  std::int32_t number = 0;    ///< of training's op, or of the slot
};

/// A stage of a slot: its parts, computed one after the other.
struct SlotStage {
  OpId first{};
  int parts = 1;
  OpId arrived = kNone<OpId>;  ///< what it waits for; none of a first stage
};

/// What a GPU may send of keys and values: a lane "kv" of slices of any prompt.
struct LiveSlices {
  LaneId lane{};
  Rank decode{};
  std::vector<OpId> sends;  ///< in their order; none: it sends nothing
};

/// A decode rank: lanes of first tokens, of any prompt.
struct LiveDecode {
  struct Tokens {
    LaneId lane{};
    std::vector<OpId> ops;
  };
  Rank rank{};
  int slots = 1;  ///< prompts that it holds at a time
  std::vector<Tokens> lanes;
};

/// Training, and room for prompts beside it that no one knows yet: each pipeline has slots, a slot
/// has an op for each stage on a lane "prefill" of its GPU, and the messages between them; the
/// controller's rank has a lane "controller" of answers. Sources draw these ops (plan/extras/): the
/// controller's what it has decided, a GPU's a slot for a prompt that it was given. What an op
/// takes and whose it is a source says as it draws it (Draw::takes, Draw::words). Keys and values
/// of models that have a `decode` go to the decode rank of the datacenter in slices, as in a plan
/// that was filled before (fill_plan()): a GPU's slices are of no slot.
struct LivePlan {
  Plan plan;                   ///< its sources are missing
  std::vector<OpId> training;  ///< by op of the plan without prefills
  std::vector<LivePipeline> pipelines;
  int slots = 0;                               ///< of each pipeline
  std::vector<LiveOp> ops;                     ///< by op
  std::vector<std::vector<SlotStage>> stages;  ///< by pipeline x slots + slot, then by stage
  std::vector<OpId> answers;
  LaneId controller{};
  KvSending sending = KvSending::layerwise;
  std::vector<LiveSlices> kv;       ///< by rank
  std::vector<LiveDecode> decodes;  ///< ascending by rank
  std::vector<LaneId> lanes;        ///< by rank: "prefill"; kNone<LaneId>: it serves nothing

  /// Do keys and values of this model leave its GPUs?
  [[nodiscard]] bool sends(const ServedModel& model) const {
    return !decodes.empty() && sends_kv(model);
  }
  [[nodiscard]] const std::vector<SlotStage>& slot(std::int32_t pipeline, std::int32_t slot) const {
    return stages[static_cast<std::size_t>(pipeline) * static_cast<std::size_t>(slots) +
                  static_cast<std::size_t>(slot)];
  }
};

struct LivePlanOptions {
  Rank controller{};
  int slots = 0;
  Overrun overrun = Overrun::finish;  ///< kill: a stage has as many parts as layers
  std::optional<KvSending> kv{};      ///< layerwise: likewise; nullopt: keys and values stay
  std::vector<int> slices{};          ///< by GPU: that it may send
};

/// Throws Error where prompts of several stages are to be killed.
[[nodiscard]] LivePlan make_live_plan(const Plan& training, const std::vector<Served>& served,
                                      const LivePlanOptions& options);

/// The most prompts that a GPU could begin in the bubbles of a stretch, which is twice what they
/// hold: training may take longer.
[[nodiscard]] int slots_of(const IterationBubbles& stretch, const std::vector<Served>& served);

/// The most slices that each GPU could have to send of what it computes in the bubbles of a
/// stretch, or twice that, likewise; of `slots` prompts of each pipeline at most. A live run has
/// kMostLiveSlices for each, and what a stretch has none left for waits for the next one.
[[nodiscard]] std::vector<std::int64_t> slices_of(const IterationBubbles& stretch,
                                                  const std::vector<Served>& served,
                                                  KvSending sending, int slots);
inline constexpr int kMostLiveSlices = 1 << 14;

/// What the controller says of a prompt that it has placed, as words of its answer.
struct LiveAnswer {
  std::int32_t request = 0, tokens = 0;
  std::int32_t pipeline = 0;  ///< place in LivePlan::pipelines
  Duration start{};           ///< of its first stage, as it is meant; below 2^46 ns
  bool is_withdrawn = false;  ///< it shall not begin any more

  [[nodiscard]] plan::DrawnWords words() const;
  [[nodiscard]] static LiveAnswer of(const plan::DrawnWords& words);
  friend bool operator==(const LiveAnswer&, const LiveAnswer&) = default;
};

/// What a GPU says of a slice that it sends.
struct LiveSlice {
  std::int32_t request = 0, tokens = 0;
  std::int32_t pipeline = 0;
  std::int32_t stage = 0;
  std::int32_t number = 0;  ///< among those of the stage; below 2^24

  [[nodiscard]] plan::DrawnWords words() const;
  [[nodiscard]] static LiveSlice of(const plan::DrawnWords& words);
  friend bool operator==(const LiveSlice&, const LiveSlice&) = default;
};

}  // namespace longhaul::prefill
