#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <tuple>
#include <vector>

#include "prefill/play/play.hpp"
#include "prefill/play/training_graph.hpp"

namespace longhaul::prefill {

class PlayedTraining;

/// Who is asked when a GPU of training has nothing to compute.
class IdleGpu {
public:
  /// A prefill that starts now and ends then, or when to ask again.
  struct Offer {
    bool starts = false;
    Duration end{};
    std::optional<Duration> again{};
  };
  IdleGpu() = default;
  IdleGpu(const IdleGpu&) = delete;
  IdleGpu& operator=(const IdleGpu&) = delete;
  virtual ~IdleGpu() = default;
  virtual Offer next(std::int32_t rank, Duration now, const PlayedTraining& training) = 0;
  virtual void block_begins(std::int32_t rank, Duration now) = 0;
  virtual void ended(std::int32_t rank, Duration start, Duration end, bool is_stopped) = 0;
  /// When a prefill ends that runs while a block is ready at `now`.
  [[nodiscard]] virtual Duration stops_at(std::int32_t rank, Duration start, Duration end,
                                          Duration now) const = 0;
};

/// Plays iterations of training in order of time, with a barrier between them. A block waits for
/// what runs on its GPU.
class PlayedTraining {
public:
  PlayedTraining(const TrainingGraph& graph, const PlayedTimes& times, IdleGpu& idle);
  void run(std::int64_t iterations);

  [[nodiscard]] Duration wall() const { return begin_; }
  [[nodiscard]] Duration busy() const { return busy_; }
  [[nodiscard]] std::int64_t blocks_bound() const { return blocks_bound_; }
  /// Of all blocks, iteration by iteration, from the iteration's begin in this run.
  [[nodiscard]] const std::vector<Duration>& starts() const { return starts_; }

  /// When each GPU computed blocks, by start.
  [[nodiscard]] const std::vector<std::vector<PrefillSpan>>& blocks() const { return blocks_; }

  /// The earliest start of the rank's next block as a rank knows it at `now`.
  [[nodiscard]] Duration next_block(std::int32_t rank, Duration now, Signals signals) const;
  /// A time of the plan, where iterations follow each other after its makespan, in this run: never,
  /// where that iteration has not begun.
  [[nodiscard]] Duration planned_to_played(Duration planned) const;

private:
  enum class Kind : std::uint8_t { block_end, prefill_end, ready, ask };
  struct Event {
    Duration at{};
    Kind kind = Kind::ready;
    std::uint32_t what = 0;   ///< node, or rank
    std::int64_t number = 0;  ///< of a prefill's end or an asking: others are outdated
    bool operator>(const Event& other) const {
      return std::tuple{at, kind, what} > std::tuple{other.at, other.kind, other.what};
    }
  };
  struct Gpu {
    bool computes = false;
    std::size_t next = 0;  ///< of its blocks, in this iteration
    std::optional<Duration> prefill_start{};
    Duration prefill_end{};
    bool is_stopped = false;
    std::optional<std::uint32_t> waiting{};  ///< a block that waits for the prefill
    std::int64_t number = 0;
    Duration open_since{};                          ///< the end of its last block
    std::vector<Duration> lengths, lengths_before;  ///< of bubbles before each block
  };
  struct NodeTimes {
    Duration ready{}, start{}, hold_end{}, end{};
    std::uint32_t left = 0;
    bool started = false;
  };

  void begin_iteration();
  void handle(const Event& event);
  void node_ready(std::uint32_t node, Duration now);
  void start_node(std::uint32_t node, Duration now);
  void tell(std::uint32_t node);
  void ask(std::int32_t rank, Duration now);
  void end_prefill(std::int32_t rank, Duration now);
  [[nodiscard]] Duration expected_start(std::uint32_t node, Duration now) const;
  [[nodiscard]] Duration expected_end(Duration now) const;
  void expect_upto(std::size_t last, Duration now) const;

  const TrainingGraph& graph_;
  const PlayedTimes& times_;
  IdleGpu& idle_;
  std::vector<NodeTimes> nodes_;
  std::vector<Gpu> gpus_;
  std::vector<std::vector<PrefillSpan>> blocks_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::int64_t iteration_ = -1, iterations_ = 0;
  std::size_t started_ = 0;
  Duration begin_{}, last_end_{}, busy_{};
  std::int64_t blocks_bound_ = 0;
  std::vector<Duration> starts_;
  mutable std::vector<NodeTimes> expected_;
  mutable std::size_t first_open_ = 0;  ///< all nodes before it are over
};

}  // namespace longhaul::prefill
