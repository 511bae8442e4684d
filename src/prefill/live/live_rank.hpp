#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "prefill/live/live_plan.hpp"
#include "prefill/play/block_memory.hpp"
#include "prefill/play/expected_training.hpp"

namespace longhaul::prefill {

/// A slot that a GPU has begun: whose prompt it holds.
struct BegunSlot {
  std::int32_t pipeline = 0, slot = 0;
  std::int32_t request = 0, tokens = 0;
};

/// A slice of a prompt's keys and values that a GPU has sent.
struct SentSlice {
  std::uint32_t op = 0;  ///< send
  std::int32_t request = 0, stage = 0;
  std::int32_t number = 0, slices = 0;  ///< of the stage
  std::int64_t first = 0, bytes = 0;    ///< of the stage's
};

/// A first token that a decode rank has computed, or was to.
struct DrawnToken {
  std::uint32_t op = 0;
  std::int32_t request = 0;
};

/// What GPUs, and the controller, counted in a stretch.
struct LiveTally {
  std::int64_t declined = 0;  ///< stages that were ready in a bubble and did not fit any more
  std::int64_t killed = 0;
  std::int64_t late_answers = 0;  ///< heard after the start that they name
  Duration latest_answer{};       ///< by how much, at most
  Duration longest_decision{};    ///< of the controller: LiveController::longest_decision()

  LiveTally& operator+=(const LiveTally& other) {
    declined += other.declined;
    killed += other.killed;
    late_answers += other.late_answers;
    latest_answer = std::max(latest_answer, other.latest_answer);
    longest_decision = std::max(longest_decision, other.longest_decision);
    return *this;
  }
};

/// A part of a stage that a GPU is to compute.
struct DrawnPart {
  OpId op{};
  std::int32_t request = 0, tokens = 0;
  std::int32_t pipeline = 0, slot = 0;  ///< as in LivePlan
  int stage = 0, part = 0, parts = 1;
};

/// Hears on a rank what its sources have drawn, before that begins.
class DrawListener {
public:
  DrawListener() = default;
  DrawListener(const DrawListener&) = delete;
  DrawListener& operator=(const DrawListener&) = delete;
  virtual ~DrawListener() = default;
  virtual void drawn(const DrawnPart& part) = 0;
  virtual void drawn(const SentSlice& slice) = 0;
};

/// What a rank did in a stretch.
struct LiveRankLog {
  std::vector<BegunSlot> begun;    ///< as the GPU of a first stage
  std::vector<SentSlice> sent;     ///< in order
  std::vector<DrawnToken> tokens;  ///< as a decode rank, in order
  LiveTally tally;
  DrawListener* listener = nullptr;
};

/// The rules by which GPUs start prompts.
struct LiveManners {
  bool gives_way = true;  ///< false: a control, which starts what it has as soon as it can
  Overrun overrun = Overrun::finish;
  Expectation expects{};  ///< what they go by
  /// What a request of a model really takes, all stages together, which is estimated to take
  /// `whole`. Asked as a stage of it starts; empty: what is estimated.
  std::function<Duration(std::size_t model, std::int32_t request, Duration whole)> takes{};
  /// No prompt begins on a GPU that lacks memory for it; nullptr: all fits.
  std::shared_ptr<const MemoryBesideBlocks> memory{};
};

/// The source of a GPU's lane of prefills: it computes what the controller has given it, in the
/// order of the controller's times, each stage in the bubble that it is meant for or in a later
/// one: what was declined takes what the prompts of that bubble leave, for there they were to fit
/// without it. It has the last word: it starts nothing that would end, by its estimate, after the
/// next block's earliest start as the ends of all ranks say; what does not fit waits for the next
/// bubble, and so does what finds no memory beside the prompts that hold it there, and beside
/// training until it will have left. A prompt that overruns ends, or is killed at the end of the
/// layer in which the block got ready.
class LiveRank final : public plan::OpSource {
public:
  /// All live as long.
  LiveRank(const LivePlan& live, const TrainingGraph& graph, const std::vector<Served>& served,
           std::int32_t rank, const LiveManners& manners, LiveRankLog& log);
  [[nodiscard]] plan::Decision next(const plan::PastEvents& past) override;

private:
  /// A stage that is this GPU's to compute.
  struct Given {
    LiveAnswer answer;
    int stage = 0;
    Duration start{}, estimate{};
    std::size_t closes = 0;     ///< the block that closes its bubble
    bool is_left_over = false;  ///< declined in the bubble that it was meant for
  };
  struct Running {
    LiveAnswer answer;
    SlotStage stage;
    Duration left{};  ///< of its real time, after the parts that were drawn
    int part = 0;     ///< the next
    int number = 0;   ///< of the stage
    std::int32_t slot = 0;
  };

  /// Memory of this GPU that a prompt holds until its slices have left, or it is over.
  struct Held {
    HeldBytes bytes;
    std::size_t slices = 0;  ///< that have not left
  };

  void heed(const plan::OpEnd& end, Duration now);
  void stage_ended(const LiveOp& op, const LiveAnswer& answer);
  void slice_left(const LiveSlice& slice);
  void forget_unsent();
  /// What it holds from now on.
  [[nodiscard]] HeldBytes asks(const LiveAnswer& answer, int stage, Duration now) const;
  [[nodiscard]] bool keeps_account() const {
    return manners_.memory && manners_.memory->of(rank_) != nullptr;
  }
  [[nodiscard]] bool has_memory(const Given& given, Duration now);
  void take(const LiveAnswer& answer, Duration now);
  void count_declined();
  [[nodiscard]] std::optional<std::int32_t> slot_for(const Given& given) const;
  [[nodiscard]] std::optional<plan::Decision> go_on();
  [[nodiscard]] std::optional<plan::Decision> start_one(Duration now, Duration& wake);
  [[nodiscard]] std::vector<std::size_t> in_turn(std::size_t next) const;
  [[nodiscard]] plan::Decision begin(std::size_t which, Duration now);
  [[nodiscard]] plan::Decision draw_part();
  [[nodiscard]] const ServedModel& model_of(std::int32_t pipeline) const {
    return served_[live_.pipelines[static_cast<std::size_t>(pipeline)].model].model;
  }

  const LivePlan& live_;
  const std::vector<Served>& served_;
  std::int32_t rank_;
  const LiveManners& manners_;
  LiveRankLog& log_;
  ExpectedTraining expected_;
  std::vector<Given> given_;  ///< by start
  std::optional<Running> running_;
  std::map<std::int32_t, Held> held_;           ///< by request
  std::vector<std::int32_t> used_;              ///< by pipeline: slots
  std::map<std::int32_t, std::int32_t> slots_;  ///< by request whose first stage has ended
  std::set<std::tuple<std::int32_t, std::int32_t, int>> arrived_;  ///< pipeline, slot, stage
};

}  // namespace longhaul::prefill
