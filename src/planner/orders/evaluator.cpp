#include "planner/orders/evaluator.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::planner {
using Kind = OrderProblem::Kind;

Evaluator::Evaluator(const Orders& orders, const OrderProblem::Links& links)
    : orders_{orders},
      problem_{orders.problem()},
      nodes_(to_size(problem_.blocks()) + 1),
      last_gradients_(problem_.devices()) {
  fill_nodes(links);
  for (const DeviceId device : problem_.device_ids()) {
    link_row(device);
    find_reductions(device);
  }
  rank_by_dry_run();
  for (const DeviceId device : problem_.device_ids()) {
    for (const BlockId block : orders_.row(device)) queue_.push(block);
  }
  LONGHAUL_ASSERT(propagate_ends(kNoLimit), "an order of {} blocks takes forever", nodes_.size());
  rank_blocks();
  set_makespan();
  for (const DeviceId device : problem_.device_ids()) {
    for (const BlockId block : orders_.row(device)) queue_.push(block);
  }
  propagate_tails();
  saved_.clear();
}

void Evaluator::fill_nodes(const OrderProblem::Links& links) {
  const BlockId none = problem_.none();
  for (Node& n : nodes_)
    n.input = n.consumer = n.before = n.after = n.link_before = n.link_after = none;
  for (ChunkId c{}; c < problem_.chunks(); ++c) {
    const auto& chunk = problem_.chunk(c);
    for (MicrobatchId m{}; m < problem_.microbatches(); ++m) {
      const auto set = [&](Kind kind, ChunkId to) {
        const auto k = index(kind);
        const BlockId block = problem_.id(kind, c, m);
        Node& n = node(block);
        n.transfer = links.messages[k][c].transfer;
        n.latency = links.messages[k][c].latency;
        n.queue = links.queue[k][c];
        if (problem_.chunk(to).device == chunk.device) return;
        n.consumer = problem_.id(kind, to, m);
        node(n.consumer).input = block;
      };
      if (!chunk.is_last) set(Kind::F, next(c));
      if (!chunk.is_first) set(Kind::G, previous(c));
      node(problem_.id(Kind::F, c, m)).release = chunk.gathered;
    }
  }
}

void Evaluator::link_row(DeviceId device) {
  const auto row = orders_.row(device);
  std::vector<std::pair<std::int32_t, BlockId>> last;  // by queue
  BlockId before = problem_.none();
  for (const BlockId block : row) {
    Node& n = node(block);
    n.time = orders_.time(block);
    n.before = before;
    if (before != problem_.none()) node(before).after = block;
    before = block;
    if (n.queue < 0) continue;
    const auto known = std::ranges::find(last, n.queue, &std::pair<std::int32_t, BlockId>::first);
    if (known == last.end()) {
      last.emplace_back(n.queue, block);
      continue;
    }
    n.link_before = known->second;
    node(known->second).link_after = block;
    known->second = block;
  }
}

/// Ranks blocks in the order in which devices that take turns get through their rows.
void Evaluator::rank_by_dry_run() {
  std::vector<std::int32_t> rank(nodes_.size(), -1);
  std::int32_t next = 0;
  IndexedVector<DeviceId, std::size_t> position(problem_.devices());
  for (bool progress = true; progress;) {
    progress = false;
    for (const DeviceId device : position.ids()) {
      const auto row = orders_.row(device);
      for (; position[device] < row.size(); ++position[device], progress = true) {
        const BlockId block = row[position[device]];
        const BlockId input = node(block).input;
        if (input != problem_.none() && rank[at(input)] < 0) break;
        rank[at(block)] = next++;
      }
    }
  }
  for (const DeviceId device : position.ids()) {
    LONGHAUL_ASSERT(position[device] == orders_.row(device).size(),
                    "device {} stops at position {} of its row", device, position[device]);
  }
  for (std::int32_t& r : rank) {
    if (r < 0) r = next++;  // W of a B, and "none"
  }
  queue_.assign(std::move(rank));
}

/// Ranks blocks by end: a block that depends on another ends later, unless blocks take no time.
void Evaluator::rank_blocks() {
  std::vector<BlockId> order(nodes_.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    order[rank] = queue_.block_at(static_cast<std::int32_t>(rank));
  std::ranges::stable_sort(order, {}, [this](BlockId block) { return node(block).end; });
  for (std::size_t rank = 0; rank < order.size(); ++rank)
    queue_.set_rank(order[rank], static_cast<std::int32_t>(rank));
  accepted_since_ranked_ = 0;
}

/// Which blocks of the device its data-parallel reductions wait for. A reduction also holds up
/// those of the chunks that end later.
void Evaluator::find_reductions(DeviceId device) {
  if (!problem_.reduces()) return;
  const auto row = orders_.row(device);
  auto& last = last_gradients_[device];
  touched_ = last;
  for (const BlockId block : last) node(block).reduction = 0;
  last.clear();
  const auto is_known = [&](ChunkId chunk) {
    return std::ranges::any_of(last, [&](BlockId b) { return problem_.chunk_of(b) == chunk; });
  };
  std::int64_t after = 0;
  for (std::size_t i = row.size(); i > 0 && last.size() < problem_.chunks_on(device).size(); --i) {
    const BlockId block = row[i - 1];
    const bool is_gradient = problem_.kind_of(block) == Kind::W || orders_.is_fused(block);
    if (!is_gradient || is_known(problem_.chunk_of(block))) continue;
    last.push_back(block);
    node(block).reduction = after += problem_.chunk(problem_.chunk_of(block)).reduction;
    touched_.push_back(block);
  }
}

std::int64_t Evaluator::time_of(BlockId block, BlockId flipped) const {
  if (block != flipped) return node(block).time;
  const auto& times = problem_.chunk(problem_.chunk_of(block)).time;
  return orders_.is_fused(block) ? times[1] : times[3];
}

Evaluator::QueueEnds* Evaluator::ends_of(std::int32_t queue) {
  for (QueueEnds& ends : queue_ends_) {
    if (ends.queue == queue) return &ends;
  }
  return nullptr;
}

void Evaluator::find_queue_ends(const Change& change) {
  queue_ends_.clear();
  const auto row = orders_.row(change.device);
  for (int i = change.first; i < change.first + change.count; ++i) {
    const Node& n = node(row[at(i)]);
    if (n.queue < 0) continue;
    if (QueueEnds* known = ends_of(n.queue)) {
      known->after = n.link_after;
    } else {
      queue_ends_.push_back({n.queue, n.link_before, n.link_after, problem_.none(), 0});
    }
  }
}

std::int64_t Evaluator::estimate(const Change& change) {
  find_queue_ends(change);
  const auto row = orders_.row(change.device);
  const std::size_t count = change.blocks.size();
  estimated_.resize(std::max(estimated_.size(), count));
  for (QueueEnds& ends : queue_ends_) ends.time = node(ends.before).sent;
  std::int64_t end = change.first > 0 ? node(row[at(change.first - 1)]).end : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Node& n = node(change.blocks[i]);
    const Node& input = node(n.input);
    end = std::max({end, input.sent + input.latency, n.release}) +
          time_of(change.blocks[i], change.flipped);
    std::int64_t sent = end + n.transfer;
    if (n.queue >= 0) {
      std::int64_t& free = ends_of(n.queue)->time;
      sent = free = std::max(end, free) + n.transfer;
    }
    estimated_[i].end = end;
    estimated_[i].sent = sent;
  }
  for (QueueEnds& ends : queue_ends_)
    ends.time = node(ends.after).transfer + node(ends.after).sent_tail;
  const auto next = to_size(change.first + change.count);
  std::int64_t way = next < row.size() ? node(row[next]).time + node(row[next]).tail : 0;
  std::int64_t longest = 0;
  for (std::size_t i = count; i-- > 0;) {
    const Node& n = node(change.blocks[i]);
    const Node& consumer = node(n.consumer);
    Estimated& e = estimated_[i];
    e.sent_tail = n.consumer == problem_.none() ? 0 : n.latency + consumer.time + consumer.tail;
    if (n.queue >= 0) {
      std::int64_t& queued = ends_of(n.queue)->time;
      e.sent_tail = std::max(e.sent_tail, queued);
      queued = n.transfer + e.sent_tail;
    }
    e.tail = std::max({way, n.transfer + e.sent_tail, n.reduction});
    longest = std::max({longest, e.end + e.tail, e.sent + e.sent_tail});
    way = time_of(change.blocks[i], change.flipped) + e.tail;
  }
  return longest;
}

}  // namespace longhaul::planner
