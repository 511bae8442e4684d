#pragma once

#include <span>
#include <vector>

#include "schedule/generators/greedy/greedy.hpp"
#include "schedule/generators/greedy/greedy_clock.hpp"
#include "schedule/generators/greedy/greedy_links.hpp"

namespace longhaul::schedule::families {

/// One pass of the greedy over a problem. Microbatches of a chunk run in order in each kind, so
/// that counters take the place of queues.
class GreedyRun {
public:
  /// After run(), `rows` (unless nullptr) holds W that ran in parts as blocks of which `part` is
  /// the first part and `parts` how many of them stand together.
  GreedyRun(const GreedyProblem& problem, const GreedyRules& rules,
            std::vector<std::vector<Block>>* rows);
  /// When the last device is done.
  Duration run();
  /// After run(): when the input of an F, or of a D or the R before it, was there.
  [[nodiscard]] Duration input_of(const Block& block) const;

private:
  static constexpr Duration kNever = GreedyClock::kNever;

  struct Chunk {
    int forwards = 0;  ///< done; so for the others
    int dgrads = 0;
    int wgrads = 0;
    int part = 0;          ///< of the next W
    int forwards_due = 0;  ///< whose input is on its way or there
    int dgrads_due = 0;
    int count = 0;
    int place = 0;           ///< in order_
    std::size_t inputs = 0;  ///< where its arrivals begin
    std::size_t gradients = 0;
    Bytes committed;  ///< room that its device needs before it runs an R or F of it
    Bytes cap;        ///< of what is committed, when another F of it comes
    Duration patience{};
  };
  struct Device {
    Duration free_at{};
    Bytes held;
    Bytes cap;      ///< of what is committed
    int first = 0;  ///< its chunks are order_[first] to order_[last - 1]
    int last = 0;
    int forwards_left = 0;
    bool after_forward = false;
  };
  /// Blocks that a device could run now, by kind (-1: none), and those that it knows to come.
  struct Candidates {
    ChunkId forward{-1};
    ChunkId dgrad{-1};
    ChunkId wgrad{-1};
    bool room = false;       ///< for the next F of some chunk, there or not
    Duration next = kNever;  ///< the first arrival later than now of an F or D that fits
  };

  void lay_out_chunks();
  void lay_out_devices();
  [[nodiscard]] std::span<const ChunkId> chunks_of(const Device& device) const {
    return {order_.data() + device.first, order_.data() + device.last};
  }
  /// The chunk and those after it on its device.
  [[nodiscard]] std::span<const ChunkId> from(const Chunk& chunk, const Device& device) const {
    return {order_.data() + chunk.place, order_.data() + device.last};
  }
  [[nodiscard]] bool fits_forward(ChunkId chunk, const Device& device) const;
  [[nodiscard]] bool fits_dgrad(ChunkId chunk, const Device& device) const;
  [[nodiscard]] Duration forward_input(const Chunk& chunk) const;
  [[nodiscard]] Duration dgrad_input(const Chunk& chunk) const;
  [[nodiscard]] Candidates candidates(const Device& device, Duration now) const;
  [[nodiscard]] const GreedyRules::Order& order(const Device& device, const Candidates& may) const;
  [[nodiscard]] Duration next_time(const Device& device) const;
  void act(std::size_t device, Duration now);
  void run_forward(ChunkId chunk, Duration start);
  void run_dgrad(ChunkId chunk, Duration start);
  void run_wgrad(ChunkId chunk, Duration start);
  void write(BlockKind kind, ChunkId chunk, int nth);
  void write_part(ChunkId chunk, int nth, int part);
  void send(const GreedyHop& hop, BlockKind kind, Duration ready);
  void deliver(ChunkId chunk, BlockKind kind, Duration arrival);
  [[nodiscard]] Duration finish();

  const GreedyProblem& problem_;
  const GreedyRules& rules_;
  std::vector<std::vector<Block>>* rows_;
  IndexedVector<ChunkId, Chunk> chunks_;
  std::vector<Device> devices_;
  std::vector<ChunkId> order_;  ///< chunks, device by device
  std::vector<Duration> arrivals_;
  IndexedVector<ChunkId, Duration> reduced_;  ///< when its last W ended
  GreedyClock clock_;
  GreedyLinks links_;
};

/// Puts parts of one W together where no F or D of the row begins later for it and the row does not
/// end later, and turns what is left apart into parts of a block (Block::part, Block::parts). `row`
/// is what the run wrote.
void merge_parts(const GreedyProblem& problem, const GreedyRun& run, std::vector<Block>& row);

}  // namespace longhaul::schedule::families
