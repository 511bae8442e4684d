#include <algorithm>

#include "base/index.hpp"
#include "base/random.hpp"
#include "planner/orders/evaluator.hpp"

namespace longhaul::planner {
namespace {

/// Changes that are accepted between two orderings of all ranks by time: at least so many, and so
/// many blocks for each, so that sorting stays a small part.
constexpr std::size_t kChangesPerRanking = 64;
constexpr std::size_t kBlocksPerChange = 16;

/// Ends may be set this many times a block, on average, before blocks are taken to wait for each
/// other: the ranks make most of them final at once.
constexpr std::size_t kMostUpdates = 8;

}  // namespace

void Evaluator::relink(DeviceId device, int first, int count) {
  const auto row = orders_.row(device);
  const auto begin = to_size(first);
  const std::size_t last = begin + to_size(count);
  BlockId before = first > 0 ? row[begin - 1] : problem_.none();
  for (QueueEnds& ends : queue_ends_) ends.last = ends.before;
  for (std::size_t i = begin; i < last; ++i) {
    Node& n = node(row[i]);
    n.before = before;
    if (before != problem_.none()) node(before).after = row[i];
    before = row[i];
    if (n.queue < 0) continue;
    BlockId& link_before = ends_of(n.queue)->last;
    n.link_before = link_before;
    if (link_before != problem_.none()) node(link_before).link_after = row[i];
    link_before = row[i];
  }
  const BlockId after = last < row.size() ? row[last] : problem_.none();
  if (before != problem_.none()) node(before).after = after;
  if (after != problem_.none()) node(after).before = before;
  for (const QueueEnds& ends : queue_ends_) {
    node(ends.last).link_after = ends.after;
    if (ends.after != problem_.none()) node(ends.after).link_before = ends.last;
  }
}

/// The blocks of the stretch share their ranks out anew, in the order of the row.
void Evaluator::rerank(DeviceId device, int first, int count) {
  const auto stretch = orders_.row(device).subspan(to_size(first), to_size(count));
  // Insertion sort of the ranks: they are few and nearly in order.
  for (std::size_t i = 1; i < stretch.size(); ++i) {
    for (std::size_t k = i; k > 0 && queue_.rank(stretch[k]) < queue_.rank(stretch[k - 1]); --k) {
      const std::int32_t lower = queue_.rank(stretch[k]);
      queue_.set_rank(stretch[k], queue_.rank(stretch[k - 1]));
      queue_.set_rank(stretch[k - 1], lower);
    }
  }
}

void Evaluator::set_stretch(const Change& undoing) {
  last_ = {undoing.device, undoing.first, undoing.count, undoing.flipped};
  if (undoing.flipped >= 0) node(undoing.flipped).time = orders_.time(undoing.flipped);
  relink(last_.device, last_.first, last_.count);
  rerank(last_.device, last_.first, last_.count);
  find_reductions(last_.device);
}

bool Evaluator::apply(const Change& undoing, std::int64_t limit) {
  saved_.clear();
  saved_tails_.clear();
  old_makespan_ = makespan_;
  set_stretch(undoing);
  const auto row = orders_.row(last_.device);
  const auto first = to_size(last_.first);
  const auto count = to_size(last_.count);
  for (std::size_t i = 0; i < count; ++i) {
    Node& n = node(row[first + i]);
    n.time = orders_.time(row[first + i]);  // of a W that was not there before, too
    // A lower bound of the tails, so that propagation can stop early.
    saved_tails_.push_back({row[first + i], n.tail});
    n.tail = estimated_[i].tail;
    queue_.push(row[first + i]);
  }
  if (first + count < row.size()) queue_.push(row[first + count]);
  for (const QueueEnds& ends : queue_ends_) {
    if (ends.after != problem_.none()) queue_.push(ends.after);
  }
  if (!propagate_ends(limit)) return false;
  set_makespan();
  return makespan_ <= limit;
}

bool Evaluator::propagate_ends(std::int64_t limit) {
  for (BlockId block = queue_.pop_lowest(); block >= 0; block = queue_.pop_lowest()) {
    if (update_end(block, limit)) continue;
    queue_.clear();
    return false;
  }
  return true;
}

bool Evaluator::update_end(BlockId block, std::int64_t limit) {
  Node& n = node(block);
  const Node& input = node(n.input);
  const std::int64_t end =
      std::max({node(n.before).end, input.sent + input.latency, n.release}) + n.time;
  const std::int64_t sent = std::max(end, node(n.link_before).sent) + n.transfer;
  if (end == n.end && sent == n.sent) return true;
  saved_.push_back({block, n.end, n.sent});
  if (end != n.end && n.after != problem_.none()) queue_.push(n.after);
  if (sent != n.sent) {
    if (n.consumer != problem_.none()) queue_.push(n.consumer);
    if (n.link_after != problem_.none()) queue_.push(n.link_after);
  }
  n.end = end;
  n.sent = sent;
  return end + n.tail <= limit && saved_.size() <= kMostUpdates * nodes_.size();
}

void Evaluator::accept() {
  const auto row = orders_.row(last_.device);
  const auto first = to_size(last_.first);
  const auto push = [this](BlockId block) {
    if (block != problem_.none()) queue_.push(block);
  };
  if (first > 0) queue_.push(row[first - 1]);
  for (std::size_t i = first; i < first + to_size(last_.count); ++i) {
    queue_.push(row[i]);
    push(node(row[i]).input);
  }
  for (const QueueEnds& ends : queue_ends_) push(ends.before);
  for (const BlockId block : touched_) queue_.push(block);
  propagate_tails();
  if (++accepted_since_ranked_ >= std::max(kChangesPerRanking, nodes_.size() / kBlocksPerChange))
    rank_blocks();
}

void Evaluator::propagate_tails() {
  for (BlockId block = queue_.pop_highest(); block >= 0; block = queue_.pop_highest())
    update_tail(block);
}

void Evaluator::update_tail(BlockId block) {
  Node& n = node(block);
  const Node& consumer = node(n.consumer);
  const Node& next = node(n.link_after);
  const std::int64_t sent_tail =
      n.consumer == problem_.none()
          ? 0
          : std::max(n.latency + consumer.time + consumer.tail, next.transfer + next.sent_tail);
  const Node& after = node(n.after);
  const std::int64_t tail =
      std::max({after.time + after.tail, n.transfer + sent_tail, n.reduction});
  if (tail == n.tail && sent_tail == n.sent_tail) return;
  if (sent_tail != n.sent_tail && n.link_before != problem_.none()) queue_.push(n.link_before);
  if (tail != n.tail) {
    if (n.before != problem_.none()) queue_.push(n.before);
    if (n.input != problem_.none()) queue_.push(n.input);
  }
  n.tail = tail;
  n.sent_tail = sent_tail;
}

void Evaluator::undo(const Change& redoing) {
  set_stretch(redoing);
  for (std::size_t i = saved_.size(); i-- > 0;) {
    node(saved_[i].block).end = saved_[i].end;
    node(saved_[i].block).sent = saved_[i].sent;
  }
  for (const SavedTail& saved : saved_tails_) node(saved.block).tail = saved.tail;
  makespan_ = old_makespan_;
}

void Evaluator::set_makespan() {
  makespan_ = 0;
  for (const DeviceId device : problem_.device_ids()) {
    const auto row = orders_.row(device);
    if (!row.empty()) makespan_ = std::max(makespan_, node(row.back()).end);
    for (const BlockId block : last_gradients_[device])
      makespan_ = std::max(makespan_, node(block).end + node(block).reduction);
  }
}

void Evaluator::critical_path(std::uint64_t seed, std::vector<BlockId>& path) const {
  path.clear();
  Random random{seed};
  BlockId now = last_critical(random);
  for (bool by_message = false; now != problem_.none();) {
    const Node& n = node(now);
    path.push_back(now);
    // Its message had to wait for the one before it on the link.
    if (by_message && n.sent - n.transfer > n.end) {
      now = n.link_before;
      continue;
    }
    const std::int64_t start = n.end - n.time;
    const Node& input = node(n.input);
    const bool by_row = n.before != problem_.none() && node(n.before).end == start;
    const bool by_input = n.input != problem_.none() && input.sent + input.latency == start;
    by_message = by_input && (!by_row || random.next() % 2 == 0);
    now = by_message ? n.input : by_row ? n.before : problem_.none();
  }
}

/// One of the blocks that the iteration ends with.
BlockId Evaluator::last_critical(Random& random) const {
  BlockId chosen = problem_.none();
  std::int64_t ties = 0;
  const auto consider = [&](BlockId block) {
    if (node(block).end + node(block).reduction != makespan_) return;
    if (random.between(0, ties++) == 0) chosen = block;
  };
  for (const DeviceId device : problem_.device_ids()) {
    const auto row = orders_.row(device);
    if (!row.empty()) consider(row.back());
    for (const BlockId block : last_gradients_[device]) consider(block);
  }
  return chosen;
}

}  // namespace longhaul::planner
