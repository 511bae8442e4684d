#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "prefill/backlog_queue.hpp"
#include "prefill/live/arrivals.hpp"
#include "prefill/live/live_plan.hpp"
#include "prefill/play/block_memory.hpp"
#include "prefill/play/expected_training.hpp"
#include "prefill/prompt/memory_over_time.hpp"

namespace longhaul::prefill {

/// A datacenter's controller (BubbleTea's) dies; the inference controller, which takes requests and
/// answers them, does not.
struct ControllerDeath {
  DatacenterId datacenter{};
  Duration at{};  ///< by the clock of requests
};

struct LiveControllerOptions {
  PlacementPolicy policy = PlacementPolicy::best_fit;
  std::optional<BacklogOptions> backlog{};  ///< nullopt: an open loop, of `arrivals`
  /// So long before a bubble opens it is filled from a backlog: more hides a late controller, less
  /// knows more.
  Duration lead{20'000'000};
  Overrun overrun = Overrun::finish;  ///< what GPUs do, of which they say nothing
  /// When GPUs hear of an answer at the latest: a bubble that is open as it is filled, as at a
  /// stretch's begin, is filled from then on.
  Duration heard_after{};
  Expectation expects{};  ///< what it goes by
  /// Does the run end with this stretch? Then nothing more is placed in it, what was placed and may
  /// still be taken back is, and requests that wait are refused (`closed`). Empty: never.
  std::function<bool()> closes{};
  std::shared_ptr<const MemoryBesideBlocks> memory{};  ///< of an open loop; nullptr: all fits
  std::vector<ControllerDeath> deaths{};               ///< for tests
  std::optional<int> stretches{};  ///< that the run has; nullopt: there is always a next one
};

/// A prompt that was placed in a stretch; all times from the stretch's begin.
struct LivePlaced {
  Decision decision;
  std::int32_t pipeline = 0;  ///< place in LivePlan::pipelines
  std::size_t answer = 0;     ///< which of LivePlan::answers said so
  Duration told{};            ///< when it was first told that it has a place; below 0: before
};

/// What prompts take of a stretch that has so much of it.
struct StretchUse {
  std::vector<int> placed{};           ///< by pipeline
  std::vector<std::int64_t> slices{};  ///< by rank: of keys and values
  std::map<Rank, int> decoding{};      ///< by decode rank: prompts that hold a place from its begin
};

/// The controller of prompts in the bubbles of a run that goes on: it places what has arrived in
/// the bubbles of the stretch as it expects them from the plan and the ends that ranks publish
/// (ExpectedTraining), beside what it has placed before. It knows no starts of blocks or prompts
/// but what follows from ends, and nothing of what will arrive.
///  - An open loop: each request is answered as it arrives, at the earliest start over all
///  pipelines
///    (ties: `best_fit` the gap of which it leaves least, then the lowest pipeline). One for which
///    this stretch has no room gets a place in a later one, which is planned as training repeats,
///    and is placed anew as each stretch begins; it hears of that where it moves by more than a
///    guard. One that was told of a place is not refused any more while the run goes on. Where no
///    stretch of the run has room it is refused (`closed`).
///  - A backlog: `best_fit` on one GPU fills each bubble, as it is about to open, with the waiting
///    prompts that fill it most, in the planned room where what was heard differs little from it;
///    else in strict order, each as its start is so near.
///  - Two roles share it: the inference controller, which takes requests and answers them, and a
///    controller of each datacenter, which places prompts on its pipelines. Where one of these dies
///    the inference controller answers what waits for a start there `failed`, by its name; what
///    GPUs were given goes on, and what comes later is for the other datacenters, or `failed` where
///    there is none.
/// Keys and values of a prompt count as they will be sent where nothing else holds the interfaces;
/// a prompt holds a place at its decode rank until its first token, or until it is killed, which
/// follows from what its GPU goes by: a layer of it ended and training's block was ready. An open
/// loop's request that finds none is refused (`decode`), one of a backlog waits.
/// With `memory` a prompt is placed where it fits beside training, as that is expected, and beside
/// what was placed before, each until its first token; one that is larger than what any GPU ever
/// has free is refused (`memory`).
/// Stretches follow each other: begin_stretch(), a source() that is played, end_stretch().
class LiveController {
public:
  /// All live as long; `stretch` are the planned bubbles of one, cut at its ends.
  LiveController(const LivePlan& live, const TrainingGraph& graph, const IterationBubbles& stretch,
                 const std::vector<Served>& served, const std::vector<Request>& file,
                 Arrivals& arrivals, LiveControllerOptions options);

  void begin_stretch();
  /// The source of the controller's lane, for one stretch.
  [[nodiscard]] std::unique_ptr<plan::OpSource> source();
  [[nodiscard]] plan::Decision next(const plan::PastEvents& past);
  /// After a stretch that took so long: what was placed and has begun. The rest waits again.
  /// `ended`: when prompts had their last stage, for those of which it has not heard.
  [[nodiscard]] std::vector<LivePlaced> end_stretch(
      Duration wall, const std::set<std::int32_t>& begun,
      const std::map<std::int32_t, Duration>& ended = {});
  /// Of an open loop: what waits for a later stretch, by the clock of requests.
  [[nodiscard]] std::vector<Decision> waiting() const;
  /// Answers at once, and those of the run's end: refusals, by the clock of requests.
  [[nodiscard]] const std::vector<Decision>& refused() const { return refused_; }
  /// Requests whose sender went before they began.
  [[nodiscard]] const std::vector<Decision>& cancelled() const { return cancelled_; }
  /// Requests whose datacenter's controller (Decision::datacenter) died before they began, or that
  /// came when no other was left.
  [[nodiscard]] const std::vector<Decision>& failed() const { return failed_; }
  /// Requests that have a place on the pipeline of a rank, or have its decode rank, and no last
  /// answer.
  [[nodiscard]] std::vector<std::int64_t> open_on(Rank rank) const;
  /// All that asked, by id; of a backlog those that do not wait any more.
  [[nodiscard]] std::vector<std::int64_t> offered() const {
    return queue_ ? queue_->left() : arrivals_.offered();
  }
  /// What an open loop still waits for finds no room any more, and what still arrives.
  void close();
  [[nodiscard]] Duration clock() const { return clock_; }
  /// In this stretch: the longest from a request's arrival until it was first answered.
  [[nodiscard]] Duration longest_decision() const { return longest_decision_; }

private:
  /// A request that waits to be placed in a stretch: in the next one, where it has no place yet.
  struct Pending {
    Waiting waiting;
    std::optional<Duration>
        told{};                     ///< when it was first told of a place, by the clock of requests
    std::size_t told_pipeline = 0;  ///< the last place that it was told of
    Duration told_start{};          ///< likewise, by the clock of requests
    std::optional<std::size_t> pipeline{};  ///< of its place in a later stretch
    Duration start{};                       ///< of that, from the next stretch's begin
  };
  struct Entry {
    Waiting waiting;
    Duration told{};  ///< as of Pending
    LiveAnswer answer;
    std::size_t number = 0;  ///< of the answer
    Duration end{};
    std::vector<std::size_t> closes;  ///< by stage: the block that closes its bubble
    std::vector<bool> ended;          ///< by stage
    Duration layer_end{-1};           ///< of the last layer that is over, not a stage's last one
    std::size_t next_block = 0;       ///< of its GPU, as that ended
    bool is_done = false;             ///< its first token is there
    bool is_withdrawn = false;
    bool comes_back = false;   ///< withdrawn, and waits again
    bool is_given_up = false;  ///< its sender has gone: it does not wait again
  };
  struct Choice {
    std::size_t pipeline = 0;
    Duration start{}, left{};
  };
  /// The stretches after this one, as planned, less what has its place there. Time 0 is the begin
  /// of the next one.
  struct Later {
    FreeTime free;
    std::optional<MemoryOverTime> memory{};
    std::vector<StretchUse> uses{};  ///< by stretch
  };

  void heed(const plan::PastEvents& past);
  void stage_ended(const LiveOp& op, const LiveAnswer& answer, Duration end);
  void token_ended(const LiveAnswer& answer, Duration end);
  void heed_closing(Duration now);
  void heed_drains(Duration now);
  void decide(Duration now);
  void heed_deaths(Duration now);
  void fail_by(DatacenterId datacenter, const Waiting& waiting);
  /// Of a pipeline that has one for the model, all of which are dead; nullopt: some is not.
  [[nodiscard]] std::optional<DatacenterId> all_dead_of(std::size_t model) const;
  /// Begins it prompts that are placed from now on?
  [[nodiscard]] bool is_open(std::size_t pipeline) const {
    return !drained_[pipeline] && !is_dead_[pipeline];
  }
  void let_in(Duration now);
  void cancel(std::int64_t request, Duration now);
  bool withdraw(Entry& entry, Duration now);
  /// Has its GPU stopped it at a layer's end?
  [[nodiscard]] bool is_killed(const Entry& entry) const;
  void give_up(const Waiting& waiting);
  void refuse_waiting();
  void tell_of(const Entry& entry, NewsKind kind, Duration end);
  [[nodiscard]] std::optional<RefusalReason> admit(Waiting& waiting);
  [[nodiscard]] bool could_hold(const Waiting& waiting);
  void place_arrived(Duration now);
  void place_one(Pending pending, FreeTime& free, std::optional<MemoryOverTime>& memory,
                 Duration now);
  /// Refuses what has not been told of a place, where it could start then (nullopt: nowhere).
  bool says_no(const Pending& pending, std::optional<Duration> start, Duration now);
  /// How many stretches may still follow, up to the first one with nothing in it.
  [[nodiscard]] std::int64_t stretches_ahead();
  [[nodiscard]] Later& later();
  void take_later(Later& later, const Pending& pending);
  [[nodiscard]] std::optional<Choice> choose_later(const Waiting& waiting);
  [[nodiscard]] std::optional<Duration> earliest_later(const Waiting& waiting, std::size_t pipeline,
                                                       Duration limit);
  /// Is there room for one more in a later stretch?
  [[nodiscard]] bool has_room_later(const Later& later, std::int64_t stretch, std::size_t pipeline,
                                    std::int64_t tokens) const;
  /// That it has a place, by the clock of requests, where it does not know it already.
  void tell_place(Pending& pending, std::size_t pipeline, Duration start, Duration now);
  void first_answer(const Request& request, Duration now);
  void lose_places_on(std::size_t pipeline);
  void place_in_order(Duration now);
  void fill_bubbles(Duration now);
  void fill_bubble(std::size_t pipeline, std::size_t block, Duration now);
  void plan_rooms();
  [[nodiscard]] Duration room_of(std::int32_t rank, std::size_t block, Duration start,
                                 Duration now);
  [[nodiscard]] Duration left_over(std::size_t pipeline, std::size_t block, Duration room,
                                   Duration now);
  [[nodiscard]] FreeTime free_time(Duration now);
  /// Of what a stretch has for prompts on a pipeline: some is left for this one.
  [[nodiscard]] bool has_room(const StretchUse& use, std::size_t pipeline,
                              std::int64_t tokens) const;
  void add_use(StretchUse& use, std::size_t pipeline, std::int64_t tokens) const;
  [[nodiscard]] StretchUse no_use() const;
  [[nodiscard]] Rank decode_rank_of(std::size_t pipeline) const;
  [[nodiscard]] int decode_slots(Rank decode) const;
  /// Is a place left at the pipeline's decode rank?
  [[nodiscard]] bool has_decode_slot(std::size_t pipeline) const;
  [[nodiscard]] bool some_decode_slot(std::size_t model) const;
  /// From the last stage's end until the first token.
  [[nodiscard]] Duration after_stages(const Waiting& waiting) const;
  /// What GPUs have for prompts from now on; nullopt: all fits.
  [[nodiscard]] std::optional<MemoryOverTime> expected_memory(Duration now);
  void hold(MemoryOverTime& memory, const Waiting& waiting, std::size_t pipeline, Duration start,
            Duration until) const;
  [[nodiscard]] Duration released_after(const Waiting& waiting) const;
  /// More than a GPU ever has, on the pipeline that lacks least.
  [[nodiscard]] Bytes lacking_memory(const Waiting& waiting) const;
  /// When the pipeline may have memory for the prompt, which lacks it from `start` on.
  [[nodiscard]] std::optional<Duration> lacks_until(const MemoryOverTime& memory,
                                                    const Waiting& waiting, std::size_t pipeline,
                                                    Duration start) const;
  [[nodiscard]] std::optional<Duration> earliest_of(FreeTime& free,
                                                    const std::optional<MemoryOverTime>& memory,
                                                    const Waiting& waiting, std::size_t pipeline,
                                                    Duration now, Duration limit) const;
  [[nodiscard]] std::optional<Choice> choose(FreeTime& free,
                                             const std::optional<MemoryOverTime>& memory,
                                             const Waiting& waiting, Duration now);
  void keep_better(std::optional<Duration> start, std::size_t pipeline, const FreeTime& free,
                   std::optional<Choice>& best) const;
  void take(FreeTime& free, const Waiting& waiting, const Choice& choice);
  void place(Pending pending, std::size_t pipeline, Duration start, Duration now);
  void refuse(const Waiting& waiting, RefusalReason reason);
  [[nodiscard]] Decision decision_of(const Waiting& waiting) const;
  [[nodiscard]] const ServedModel& model(std::size_t model) const { return served_[model].model; }
  [[nodiscard]] bool fills_bubbles() const;

  const LivePlan& live_;
  const IterationBubbles& stretch_;
  const std::vector<Served>& served_;
  Arrivals& arrivals_;
  LiveControllerOptions options_;
  ExpectedTraining expected_;
  Duration shortest_;  ///< no stage of a prompt takes less
  FreeTime planned_;
  std::map<std::pair<std::size_t, Duration>, bool> holds_;  ///< by model and time
  std::optional<BacklogQueue> queue_;
  Duration clock_{};  ///< of requests, at the stretch's begin
  std::vector<Entry> entries_;
  std::map<std::int32_t, std::size_t> entry_of_;            ///< by request
  std::vector<Pending> arrived_;                            ///< that no one has looked at
  std::vector<Pending> pending_;                            ///< of later stretches
  std::optional<Later> later_;                              ///< nullopt: to be made of `pending_`
  std::vector<std::vector<FreeMemoryStep>> planned_steps_;  ///< of a stretch, as it begins
  int played_ = 0;                                          ///< stretches that are over
  Duration longest_decision_{};
  StretchUse use_;             ///< of this stretch, decode ranks left out
  std::vector<bool> is_dead_;  ///< by pipeline: its controller
  std::vector<bool> drained_;  ///< by pipeline
  bool is_closing_ = false;
  std::vector<std::size_t> filled_;                   ///< by rank: bubbles up to this block's
  std::vector<std::vector<Duration>> planned_rooms_;  ///< by rank and block, for a backlog
  std::deque<LiveAnswer> outbox_;
  std::size_t answers_ = 0;
  Duration look_{};  ///< when something is to be decided next
  std::vector<Decision> refused_, cancelled_, failed_;
};

}  // namespace longhaul::prefill
