#pragma once

#include <limits>
#include <vector>

#include "base/index.hpp"
#include "base/random.hpp"
#include "planner/orders/orders.hpp"
#include "planner/orders/rank_queue.hpp"

namespace longhaul::planner {

/// Times of an order in one replica, kept up to date change by change: exactly what the simulator
/// gives where every link belongs to one pair of devices, because a link then serves messages in
/// the order of their producers. Two numbers a block: when it ends at the earliest, and its tail,
/// the longest way from there to the end of the iteration. What a change cannot reach is not looked
/// at.
class Evaluator {
public:
  static constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max() / 4;

  /// `links`: of the problem. `orders` must outlive it and change only by apply() and undo().
  Evaluator(const Orders& orders, const OrderProblem::Links& links);

  [[nodiscard]] std::int64_t makespan() const { return makespan_; }
  [[nodiscard]] std::int64_t end(BlockId block) const { return node(block).end; }

  /// The result of a change, as the longest way through its blocks with everything else as it is.
  /// Too low where ways beside them get longer; too high where an input of theirs follows from
  /// others of them by way of another device, which then answers earlier than it did (and likewise
  /// for tails), so that a good change may be refused. Time linear in the change.
  [[nodiscard]] std::int64_t estimate(const Change& change);
  /// After Orders::apply() of the change that estimate() saw last; `undoing` is what apply() made
  /// of it. False where the makespan would exceed `limit`, by tails that are as estimate() has them
  /// or older, or blocks wait for each other: then undo() must follow. Otherwise makespan() is
  /// exact, and accept() or undo() follows.
  [[nodiscard]] bool apply(const Change& undoing, std::int64_t limit);
  /// Brings the tails up to date.
  void accept();
  /// After Orders::apply() took the last change back; `redoing` is what it made of it.
  void undo(const Change& redoing);

  /// Some longest way through the order, last block first; `seed` decides between equal ones.
  void critical_path(std::uint64_t seed, std::vector<BlockId>& path) const;

private:
  struct Node {
    std::int64_t time = 0, release = 0, transfer = 0, latency = 0;
    std::int64_t end = 0;        ///< of the block
    std::int64_t sent = 0;       ///< when the link is free again after its message
    std::int64_t tail = 0;       ///< after `end`
    std::int64_t sent_tail = 0;  ///< after `sent`
    std::int64_t reduction = 0;  ///< collectives after the last gradient of a chunk
    BlockId input = 0, consumer = 0;
    BlockId before = 0, after = 0;            ///< in the row
    BlockId link_before = 0, link_after = 0;  ///< in the queue of its link
    std::int32_t queue = -1;
  };
  struct Saved {
    BlockId block;
    std::int64_t end, sent;
  };
  struct SavedTail {
    BlockId block;
    std::int64_t tail;
  };
  /// Ends of the piece of a link's queue that a change replaces.
  struct QueueEnds {
    std::int32_t queue;
    BlockId before, after;
    BlockId last;       ///< running: the message in front
    std::int64_t time;  ///< running: free at (forwards), way from the next message on (backwards)
  };

  [[nodiscard]] Node& node(BlockId block) { return nodes_[at(block)]; }
  [[nodiscard]] const Node& node(BlockId block) const { return nodes_[at(block)]; }
  void fill_nodes(const OrderProblem::Links& links);
  void link_row(DeviceId device);
  void rank_by_dry_run();
  void rank_blocks();
  void find_reductions(DeviceId device);
  [[nodiscard]] std::int64_t time_of(BlockId block, BlockId flipped) const;
  [[nodiscard]] QueueEnds* ends_of(std::int32_t queue);
  void find_queue_ends(const Change& change);
  void relink(DeviceId device, int first, int count);
  void rerank(DeviceId device, int first, int count);
  [[nodiscard]] bool propagate_ends(std::int64_t limit);
  void propagate_tails();
  void set_makespan();
  [[nodiscard]] bool update_end(BlockId block, std::int64_t limit);
  void update_tail(BlockId block);
  void set_stretch(const Change& undoing);
  [[nodiscard]] BlockId last_critical(Random& random) const;

  const Orders& orders_;
  const OrderProblem& problem_;
  std::vector<Node> nodes_;
  RankQueue queue_;
  std::int64_t makespan_ = 0, old_makespan_ = 0;
  struct Stretch {
    DeviceId device{};
    int first = 0, count = 0;
    BlockId flipped = -1;
  } last_;  ///< where the last change is, as the row is now
  std::vector<Saved> saved_;
  std::vector<SavedTail> saved_tails_;
  std::vector<BlockId> touched_;  ///< whose reductions may have changed
  IndexedVector<DeviceId, std::vector<BlockId>> last_gradients_;  ///< where it reduces them
  std::vector<QueueEnds> queue_ends_;
  struct Estimated {
    std::int64_t end, sent, tail, sent_tail;
  };
  std::vector<Estimated> estimated_;
  std::size_t accepted_since_ranked_ = 0;
};

}  // namespace longhaul::planner
