#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::prefill {

/// An iteration of training as what waits for what: blocks, messages and collectives with the order
/// on lanes and shared resources that a simulation found. Played with other times, orders stay.
class TrainingGraph {
public:
  /// Of the earlier one the time that the later one waits for.
  enum class Moment : std::uint8_t { start, hold_end, end };
  struct Edge {
    std::uint32_t from = 0;
    Moment moment = Moment::end;
  };
  /// A block, a message (both sides), or a collective.
  struct Node {
    OpKind kind = OpKind::compute;
    OpId op{};               ///< of a message its send, of a collective its first member
    OpId receive{};          ///< of a message
    std::int32_t rank = -1;  ///< of a block
    DeviceId device{};       ///< of a block
    Duration hold{};         ///< from start to hold_end
    Duration latency{};      ///< from there to `end`
    Duration planned{};      ///< start in the simulation
  };

  TrainingGraph(const Plan& plan, const OpTimes& times, int gpus);

  /// By planned start; all that a node waits for stands before it.
  [[nodiscard]] std::span<const Node> nodes() const { return nodes_; }
  [[nodiscard]] std::span<const Edge> before(std::size_t node) const {
    return {edges_.data() + begin_[node], begin_[node + 1] - begin_[node]};
  }
  [[nodiscard]] std::span<const std::uint32_t> after(std::size_t node) const {
    return {after_.data() + after_begin_[node], after_begin_[node + 1] - after_begin_[node]};
  }
  /// The blocks of a GPU, by planned start.
  [[nodiscard]] std::span<const std::uint32_t> blocks(std::int32_t rank) const {
    return blocks_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Duration makespan() const { return makespan_; }
  [[nodiscard]] int gpus() const { return static_cast<int>(blocks_.size()); }

private:
  class Builder;

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<std::size_t> begin_, after_begin_;
  std::vector<std::uint32_t> after_;
  std::vector<std::vector<std::uint32_t>> blocks_;
  Duration makespan_{};
};

}  // namespace longhaul::prefill
