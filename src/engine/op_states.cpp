#include "engine/op_states.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"

namespace longhaul::engine {

OpStates::OpStates(const Plan& plan, const comm::HostRanks& host_ranks)
    : plan_{plan},
      host_ranks_{host_ranks},
      range_{ops_of_rank(plan, host_ranks.self())},
      open_(range_.count),
      cause_(range_.count),
      dependent_begin_(range_.count + 1, 0),
      due_(range_.count),
      inputs_(range_.count),
      lag_(range_.count),
      posted_(range_.count),
      done_(range_.count),
      times_(plan.ops.size()),
      events_{plan, host_ranks} {
  const auto each_edge = [&](auto&& visit) {
    for (std::uint32_t i = 0; i < range_.count; ++i)
      for (const OpId before : plan_.after_of(OpId{range_.first + i}))
        visit(local(before), OpId{range_.first + i});
  };
  each_edge([&](std::size_t before, OpId) { ++dependent_begin_[before + 1]; });
  std::partial_sum(dependent_begin_.begin(), dependent_begin_.end(), dependent_begin_.begin());
  dependents_.resize(dependent_begin_.back());
  std::vector<std::uint32_t> next(dependent_begin_.begin(), dependent_begin_.end() - 1);
  each_edge([&](std::size_t before, OpId id) { dependents_[next[before]++] = id; });
}

void OpStates::begin_iteration(TimePoint at) {
  for (std::uint32_t i = 0; i < range_.count; ++i) {
    const OpId id{range_.first + i};
    open_[i] = plan_.op(id).after_count;
    cause_[i] = {at, kNone<OpId>, BoundKind::start};
    times_[index(id)].ready = at;
    due_[i] = kNever;
    inputs_[i] = {at, at};
    lag_[i] = {};
    posted_[i] = done_[i] = false;
    events_.note(id, comm::OpEvent::none);
  }
  remaining_ = range_.count;
  last_end_ = {at, at};
}

void OpStates::posted(OpId id) {
  posted_[local(id)] = true;
  publish(id, comm::OpEvent::posted);
}

void OpStates::started(OpId id, TimePoint seen, const Cause& cause) {
  times_[index(id)].start = seen;
  times_[index(id)].bound_by = cause.by;
  times_[index(id)].bound_kind = cause.kind;
  if (marks_) marks_->started(id);
  publish(id, comm::OpEvent::started);
}

void OpStates::ended(OpId id, TimePoint seen, TimePoint due) {
  const std::size_t at = local(id);
  LONGHAUL_ASSERT(!done_[at], "op {} ends twice", index(id));
  done_[at] = true;
  --remaining_;
  times_[index(id)].end = seen;
  last_end_.raise(seen, lag_[at]);
  for (const OpId dependent : dependents(id)) {
    --open_[local(dependent)];
    cause_[local(dependent)].raise(due, id, BoundKind::dependency);
    inputs_[local(dependent)].raise(seen, lag_[at]);
    times_[index(dependent)].ready = seen;
  }
  if (marks_) marks_->ended(id);
  publish(id, comm::OpEvent::ended);
  publish_progress(seen);
}

void OpStates::stamped(OpId block, TimePoint given, TimePoint start, const Cause& cause) {
  OpTime& time = times_[index(block)];
  time.start = std::max(start, given);
  time.bound_by = cause.by;
  time.bound_kind = cause.kind;
  TimePoint ready{};
  for (const OpId before : plan_.after_of(block)) {
    OpTime& input = times_[index(before)];
    if (input.end > given) input.end = std::clamp(time.start, input.start, input.end);
    ready = std::max(ready, input.end);
  }
  if (ready > TimePoint{}) time.ready = ready;
}

void OpStates::publish(OpId id, comm::OpEvent event) const {
  events_.note(id, event);
  comm::RankStatus& slot = host_ranks_.mine();
  slot.last_op.store(static_cast<std::uint32_t>(id), std::memory_order_relaxed);
  slot.last_event.store(event, std::memory_order_relaxed);
}

void OpStates::publish_progress(TimePoint at) const {
  host_ranks_.mine().progress.store(at.count(), std::memory_order_relaxed);
}

void OpStates::publish_wait(OpId next_block) const {
  OpId waits_for = kNone<OpId>;
  if (next_block != kNone<OpId>) {
    for (const OpId before : plan_.after_of(next_block))
      if (!done_[local(before)]) waits_for = before;
  }
  const bool unposted = waits_for != kNone<OpId> && plan_.op(waits_for).kind == OpKind::recv &&
                        !posted_[local(waits_for)];
  comm::RankStatus& slot = host_ranks_.mine();
  slot.waits_for.store(static_cast<std::uint32_t>(waits_for), std::memory_order_relaxed);
  slot.unposted.store(unposted ? 1 : 0, std::memory_order_relaxed);
}

namespace {

/// "F(3,5)": of chunk 3, microbatch 5; what a send or receive carries, and between whom.
std::string title_of(const Op& op) {
  const Block block{op.block_kind, op.part, op.parts, op.chunk, op.microbatch};
  std::string name =
      is_step(op) ? fmt::format("step {} of {}", op.microbatch, longhaul::to_text(op.collective))
                  : fmt::format("{}({},{})", longhaul::to_string(block.kind), block.chunk,
                                block.microbatch);
  if (block.parts > 1) name += fmt::format(".{}/{}", block.part, block.parts);
  switch (op.kind) {
    case OpKind::compute: return name;
    case OpKind::send: return fmt::format("send {} to {}", name, index(op.peer));
    case OpKind::recv: return fmt::format("receive {} from {}", name, index(op.peer));
    case OpKind::collective: return fmt::format("collective of chunk {}", op.chunk);
  }
  return name;
}

}  // namespace

void OpMarks::started(OpId id) { open_[id] = cuda::begin_mark(title_of(plan_.op(id))); }

void OpMarks::ended(OpId id) {
  const auto mark = open_.find(id);
  if (mark == open_.end()) return;
  cuda::end_mark(mark->second);
  open_.erase(mark);
}

}  // namespace longhaul::engine
