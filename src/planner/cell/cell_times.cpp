#include "planner/cell/cell_times.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace longhaul {

CellTimes::CellTimes(const CellModel& model)
    : model_{model},
      end_(model.blocks.size()),
      ready_(model.messages.size()),
      begin_(model.messages.size()),
      arrival_(model.messages.size()),
      row_free_(model.rows.size()),
      queue_free_(model.queues.size()),
      row_next_(model.rows.size()),
      queue_next_(model.queues.size()),
      waiting_(model.queues.size()),
      is_open_(model.rows.size()) {
  std::int32_t chunks = 0;
  for (const CellModel::OfBlock& block : model.blocks)
    chunks = std::max(chunks, block.block.chunk + 1);
  last_gradient_.resize(index_of(chunks));
  sequence_.reserve(model.blocks.size());
}

void CellTimes::reset() {
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
  for (std::size_t row = model_.rows.size(); row-- > 0;)
    open_rows_.push_back(static_cast<std::int32_t>(row));
  std::ranges::fill(is_open_, std::uint8_t{1});
}

bool CellTimes::evaluate(const CellOrders& orders) {
  reset();
  drain(orders, Turns::stated);
  return finish();
}

bool CellTimes::take_turns(CellOrders& orders, const Urgency& urgency) {
  reset();
  for (std::size_t q = 0; q < orders.turns.size(); ++q) orders.turns[q].clear();
  do {
    drain(orders, Turns::by_rule);
  } while (serve_most_urgent(orders, urgency));
  return finish();
}

void CellTimes::drain(const CellOrders& orders, Turns turns) {
  while (!open_rows_.empty()) {
    const std::int32_t row = open_rows_.back();
    open_rows_.pop_back();
    is_open_[index_of(row)] = 0;
    advance_row(orders, row, turns);
  }
}

void CellTimes::advance_row(const CellOrders& orders, std::int32_t row, Turns turns) {
  const auto& blocks = orders.rows[index_of(row)];
  std::size_t& next = row_next_[index_of(row)];
  std::int64_t& now = row_free_[index_of(row)];
  for (; next < blocks.size(); ++next) {
    const CellBlockId id = blocks[next];
    const CellModel::OfBlock& block = model_.blocks[index_of(id)];
    std::int64_t start = std::max(now, block.release);
    if (block.input >= 0) {
      const std::int64_t arrival = arrival_[index_of(block.input)];
      if (arrival == kNever) return;
      start = std::max(start, arrival);
    }
    now = end_[index_of(id)] = start + block.time;
    sequence_.push_back(id);
    if (block.output < 0) continue;
    const CellModel::OfMessage& message = model_.messages[index_of(block.output)];
    ready_[index_of(block.output)] = now + message.scatter;
    if (!model_.queues[index_of(message.queue)].turns) {
      serve(block.output);
    } else if (turns == Turns::stated) {
      advance_turns(orders, message.queue);
    } else {
      waiting_[index_of(message.queue)].push_back(block.output);
    }
  }
}

void CellTimes::advance_turns(const CellOrders& orders, CellQueueId queue) {
  const auto& turns = orders.turns[index_of(queue)];
  std::size_t& next = queue_next_[index_of(queue)];
  while (next < turns.size() && ready_[index_of(turns[next])] != kNever) serve(turns[next++]);
}

void CellTimes::serve(CellMessageId id) {
  const CellModel::OfMessage& message = model_.messages[index_of(id)];
  std::int64_t& link = queue_free_[index_of(message.queue)];
  begin_[index_of(id)] = std::max(link, ready_[index_of(id)]);
  link = begin_[index_of(id)] + message.transfer;
  arrival_[index_of(id)] = link + message.latency;
  const std::int32_t row = model_.blocks[index_of(message.consumer)].row;
  if (is_open_[index_of(row)] != 0) return;
  is_open_[index_of(row)] = 1;
  open_rows_.push_back(row);
}

/// All rows wait. The queue that can serve first does: what it sets free is not ready before.
bool CellTimes::serve_most_urgent(CellOrders& orders, const Urgency& urgency) {
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

bool CellTimes::finish() {
  if (sequence_.size() != model_.blocks.size()) return false;
  makespan_ = -1;
  std::ranges::fill(last_gradient_, -1);
  for (const CellBlockId id : sequence_) {
    const Block& block = model_.blocks[index_of(id)].block;
    if (block.kind == BlockKind::B || block.kind == BlockKind::W) {
      CellBlockId& last = last_gradient_[index_of(block.chunk)];
      if (last < 0 || end(id) > end(last)) last = id;
    }
    if (end(id) <= makespan_) continue;
    makespan_ = end(id);
    last_ = id;
  }
  for (const auto& reductions : model_.reductions) reduce(reductions);
  return true;
}

/// A device's reductions go one behind the other, each when the last pipeline has its gradients.
void CellTimes::reduce(const std::vector<CellModel::Reduction>& reductions) {
  std::int64_t now = 0;
  CellBlockId waited_for = -1;
  for (const CellModel::Reduction& reduction : reductions) {
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

CellMessageId CellTimes::message_in_front(const CellOrders& orders, CellMessageId message) const {
  const auto queue = index_of(model_.messages[index_of(message)].queue);
  CellMessageId front = -1;
  if (model_.queues[queue].turns) {
    for (const CellMessageId other : orders.turns[queue]) {
      if (other == message) return front;
      front = other;
    }
    return -1;
  }
  for (const CellBlockId id : orders.rows[index_of(
           model_.blocks[index_of(model_.messages[index_of(message)].producer)].row)]) {
    const CellMessageId other = model_.blocks[index_of(id)].output;
    if (other == message) return front;
    if (other >= 0 && index_of(model_.messages[index_of(other)].queue) == queue) front = other;
  }
  return -1;
}

void CellTimes::critical_path(const CellOrders& orders, Critical& path) const {
  path.blocks.clear();
  path.messages.clear();
  for (CellBlockId id = last_; id >= 0;) {
    path.blocks.push_back(id);
    const CellModel::OfBlock& block = model_.blocks[index_of(id)];
    CellMessageId message = block.input;
    if (message >= 0 && arrival_[index_of(message)] == start(id)) {
      path.messages.push_back(message);
      while (message >= 0 && begin_[index_of(message)] > ready_[index_of(message)]) {
        message = message_in_front(orders, message);
        if (message >= 0) path.messages.push_back(message);
      }
      id = message >= 0 ? model_.messages[index_of(message)].producer : -1;
      continue;
    }
    const auto& row = orders.rows[index_of(block.row)];
    const auto place = std::ranges::find(row, id);
    id = place == row.begin() || start(id) == block.release ? -1 : *(place - 1);
  }
}

}  // namespace longhaul
