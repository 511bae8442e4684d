#pragma once

#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "base/random.hpp"
#include "planner/wan_sharing/turn_problem.hpp"

namespace longhaul::planner {

/// When the blocks and messages of a cell run: a sweep over its rows and queues, each of which goes
/// on until it waits for another. Time linear in blocks and messages.
class TurnEvaluator {
public:
  explicit TurnEvaluator(const TurnProblem& problem);

  /// Evaluates the turns as they are stated. False: blocks and messages wait for each other.
  [[nodiscard]] bool evaluate(const TurnOrders& orders);

  /// Whose turn it is, when a link is free and several messages are there: the one with the
  /// smallest value; ties: the one that was ready first, then the lower id.
  using Urgency = std::vector<std::int64_t>;  ///< index: message
  /// Rows as stated; the turns become those that the rule makes: a free link waits for no message.
  [[nodiscard]] bool take_turns(TurnOrders& orders, const Urgency& urgency);

  /// Times of the last evaluation that returned true, in ns.
  [[nodiscard]] std::int64_t makespan() const { return makespan_; }
  [[nodiscard]] std::int64_t end(CellBlockId block) const { return end_[index_of(block)]; }
  [[nodiscard]] std::int64_t start(CellBlockId block) const {
    return end(block) - problem_.blocks[index_of(block)].time;
  }
  /// When a message gets the link of its queue.
  [[nodiscard]] std::int64_t begin(CellMessageId message) const {
    return begin_[index_of(message)];
  }

  /// Blocks in the order in which they came to run: no block stands before one that it needs.
  [[nodiscard]] const std::vector<CellBlockId>& sequence() const { return sequence_; }

  /// A step of a longest way through the orders: a block, and the message that it waited for (-1:
  /// it waited for the block before it).
  struct Critical {
    std::vector<CellBlockId> blocks;
    std::vector<CellMessageId> messages;
  };
  /// The critical path of the last evaluation, whose orders `orders` must still be.
  void critical_path(const TurnOrders& orders, Critical& path) const;

private:
  static std::size_t index_of(std::int32_t id) { return to_size(id); }
  static constexpr std::int64_t kNever = -1;

  enum class Turns { stated, by_rule };
  void reset();
  void drain(const TurnOrders& orders, Turns turns);
  void advance_row(const TurnOrders& orders, std::int32_t row, Turns turns);
  void advance_turns(const TurnOrders& orders, CellQueueId queue);
  void serve(CellMessageId message);
  [[nodiscard]] bool serve_most_urgent(TurnOrders& orders, const Urgency& urgency);
  [[nodiscard]] bool finish();
  void reduce(const std::vector<TurnProblem::Reduction>& reductions);
  [[nodiscard]] CellMessageId message_in_front(const TurnOrders& orders,
                                               CellMessageId message) const;

  const TurnProblem& problem_;
  std::vector<std::int64_t> end_, ready_, begin_, arrival_;
  std::vector<std::int64_t> row_free_, queue_free_;
  std::vector<std::size_t> row_next_, queue_next_;
  std::vector<std::vector<CellMessageId>> waiting_;  ///< by queue: ready, where a rule decides
  std::vector<std::int32_t> open_rows_;
  std::vector<std::uint8_t> is_open_;
  std::vector<CellBlockId> sequence_;
  std::vector<CellBlockId> last_gradient_;  ///< index: chunk
  std::int64_t makespan_ = 0;
  CellBlockId last_ = -1;  ///< after it the iteration ends
};

}  // namespace longhaul::planner
