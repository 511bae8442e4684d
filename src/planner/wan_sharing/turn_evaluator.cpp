#include "planner/wan_sharing/turn_evaluator.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace longhaul::planner {

TurnEvaluator::TurnEvaluator(const TurnProblem& problem)
    : problem_{problem},
      end_(problem.blocks.size()),
      ready_(problem.messages.size()),
      begin_(problem.messages.size()),
      arrival_(problem.messages.size()),
      row_free_(problem.rows.size()),
      queue_free_(problem.queues.size()),
      row_next_(problem.rows.size()),
      queue_next_(problem.queues.size()),
      waiting_(problem.queues.size()),
      is_open_(problem.rows.size()) {
  std::int32_t chunks = 0;
  for (const TurnProblem::OfBlock& block : problem.blocks)
    chunks = std::max(chunks, block.block.chunk + 1);
  // A copy of the model without a microbatch has no blocks, but its gradients are reduced.
  for (const auto& reductions : problem.reductions)
    for (const TurnProblem::Reduction& reduction : reductions)
      chunks = std::max(chunks, reduction.chunk + 1);
  last_gradient_.resize(index_of(chunks));
  sequence_.reserve(problem.blocks.size());
}

void TurnEvaluator::reset() {
  std::ranges::fill(end_, kNever);
  std::ranges::fill(ready_, kNever);
  std::ranges::fill(arrival_, kNever);
  std::ranges::fill(row_free_, 0);
  std::ranges::fill(queue_free_, 0);
  std::ranges::fill(row_next_, 0);
  std::ranges::fill(queue_next_, 0);
  for (auto& waiting : waiting_) waiting.clear();
  sequence_.clear();
  open_rows_.clear();
  for (std::size_t row = problem_.rows.size(); row-- > 0;)
    open_rows_.push_back(static_cast<std::int32_t>(row));
  std::ranges::fill(is_open_, std::uint8_t{1});
}

bool TurnEvaluator::evaluate(const TurnOrders& orders) {
  reset();
  drain(orders, Turns::stated);
  return finish();
}

bool TurnEvaluator::take_turns(TurnOrders& orders, const Urgency& urgency) {
  reset();
  for (std::size_t q = 0; q < orders.turns.size(); ++q) orders.turns[q].clear();
  do {
    drain(orders, Turns::by_rule);
  } while (serve_most_urgent(orders, urgency));
  return finish();
}

void TurnEvaluator::drain(const TurnOrders& orders, Turns turns) {
  while (!open_rows_.empty()) {
    const std::int32_t row = open_rows_.back();
    open_rows_.pop_back();
    is_open_[index_of(row)] = 0;
    advance_row(orders, row, turns);
  }
}

void TurnEvaluator::advance_row(const TurnOrders& orders, std::int32_t row, Turns turns) {
  const auto& blocks = orders.rows[index_of(row)];
  std::size_t& next = row_next_[index_of(row)];
  std::int64_t& now = row_free_[index_of(row)];
  for (; next < blocks.size(); ++next) {
    const CellBlockId id = blocks[next];
    const TurnProblem::OfBlock& block = problem_.blocks[index_of(id)];
    std::int64_t start = std::max(now, block.release);
    if (block.input >= 0) {
      const std::int64_t arrival = arrival_[index_of(block.input)];
      if (arrival == kNever) return;
      start = std::max(start, arrival);
    }
    now = end_[index_of(id)] = start + block.time;
    sequence_.push_back(id);
    if (block.output < 0) continue;
    const TurnProblem::OfMessage& message = problem_.messages[index_of(block.output)];
    ready_[index_of(block.output)] = now + message.scatter;
    if (!problem_.queues[index_of(message.queue)].turns) {
      serve(block.output);
    } else if (turns == Turns::stated) {
      advance_turns(orders, message.queue);
    } else {
      waiting_[index_of(message.queue)].push_back(block.output);
    }
  }
}

void TurnEvaluator::advance_turns(const TurnOrders& orders, CellQueueId queue) {
  const auto& turns = orders.turns[index_of(queue)];
  std::size_t& next = queue_next_[index_of(queue)];
  while (next < turns.size() && ready_[index_of(turns[next])] != kNever) serve(turns[next++]);
}

void TurnEvaluator::serve(CellMessageId id) {
  const TurnProblem::OfMessage& message = problem_.messages[index_of(id)];
  std::int64_t& link = queue_free_[index_of(message.queue)];
  begin_[index_of(id)] = std::max(link, ready_[index_of(id)]);
  link = begin_[index_of(id)] + message.transfer;
  arrival_[index_of(id)] = link + message.latency;
  const std::int32_t row = problem_.blocks[index_of(message.consumer)].row;
  if (is_open_[index_of(row)] != 0) return;
  is_open_[index_of(row)] = 1;
  open_rows_.push_back(row);
}

/// All rows wait. The queue that can serve first does: what it sets free is not ready before.
bool TurnEvaluator::serve_most_urgent(TurnOrders& orders, const Urgency& urgency) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::size_t chosen = waiting_.size();
  for (std::size_t q = 0; q < waiting_.size(); ++q) {
    for (const CellMessageId message : waiting_[q]) {
      const std::int64_t when = std::max(queue_free_[q], ready_[index_of(message)]);
      if (when >= first) continue;
      first = when;
      chosen = q;
    }
  }
  if (chosen == waiting_.size()) return false;
  auto& waiting = waiting_[chosen];
  const auto rank = [&](CellMessageId message) {
    const std::int64_t ready = ready_[index_of(message)];
    return std::tuple{ready > first, urgency[index_of(message)], ready, message};
  };
  const auto message = std::ranges::min_element(waiting, {}, rank);
  orders.turns[chosen].push_back(*message);
  serve(*message);
  waiting.erase(message);
  return true;
}

bool TurnEvaluator::finish() {
  if (sequence_.size() != problem_.blocks.size()) return false;
  makespan_ = -1;
  std::ranges::fill(last_gradient_, -1);
  for (const CellBlockId id : sequence_) {
    const Block& block = problem_.blocks[index_of(id)].block;
    if (block.kind == BlockKind::B || block.kind == BlockKind::W) {
      CellBlockId& last = last_gradient_[index_of(block.chunk)];
      if (last < 0 || end(id) > end(last)) last = id;
    }
    if (end(id) <= makespan_) continue;
    makespan_ = end(id);
    last_ = id;
  }
  for (const auto& reductions : problem_.reductions) reduce(reductions);
  return true;
}

/// A device's reductions go one after the other, each when the last pipeline has its gradients.
void TurnEvaluator::reduce(const std::vector<TurnProblem::Reduction>& reductions) {
  std::int64_t now = 0;
  CellBlockId waited_for = -1;
  for (const TurnProblem::Reduction& reduction : reductions) {
    const CellBlockId last = last_gradient_[index_of(reduction.chunk)];
    if (last >= 0 && end(last) > now) {
      now = end(last);
      waited_for = last;
    }
    now += reduction.time;
  }
  if (now <= makespan_) return;
  makespan_ = now;
  last_ = waited_for;
}

CellMessageId TurnEvaluator::message_in_front(const TurnOrders& orders,
                                              CellMessageId message) const {
  const auto queue = index_of(problem_.messages[index_of(message)].queue);
  CellMessageId front = -1;
  if (problem_.queues[queue].turns) {
    for (const CellMessageId other : orders.turns[queue]) {
      if (other == message) return front;
      front = other;
    }
    return -1;
  }
  for (const CellBlockId id : orders.rows[index_of(
           problem_.blocks[index_of(problem_.messages[index_of(message)].producer)].row)]) {
    const CellMessageId other = problem_.blocks[index_of(id)].output;
    if (other == message) return front;
    if (other >= 0 && index_of(problem_.messages[index_of(other)].queue) == queue) front = other;
  }
  return -1;
}

void TurnEvaluator::critical_path(const TurnOrders& orders, Critical& path) const {
  path.blocks.clear();
  path.messages.clear();
  for (CellBlockId id = last_; id >= 0;) {
    path.blocks.push_back(id);
    const TurnProblem::OfBlock& block = problem_.blocks[index_of(id)];
    CellMessageId message = block.input;
    if (message >= 0 && arrival_[index_of(message)] == start(id)) {
      path.messages.push_back(message);
      while (message >= 0 && begin_[index_of(message)] > ready_[index_of(message)]) {
        message = message_in_front(orders, message);
        if (message >= 0) path.messages.push_back(message);
      }
      id = message >= 0 ? problem_.messages[index_of(message)].producer : -1;
      continue;
    }
    const auto& row = orders.rows[index_of(block.row)];
    const auto place = std::ranges::find(row, id);
    id = place == row.begin() || start(id) == block.release ? -1 : *(place - 1);
  }
}

}  // namespace longhaul::planner
