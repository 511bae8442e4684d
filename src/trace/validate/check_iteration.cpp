#include "trace/validate/check_iteration.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/index.hpp"
#include "trace/validate/check_pieces.hpp"

namespace longhaul::trace {
namespace {

/// A row that names another op as what it waited for.
struct Bound {
  std::int64_t by, op;
  std::int32_t rank;
};
struct BoundLess {
  bool operator()(const Bound& a, const Bound& b) const {
    return std::tie(a.by, a.op) < std::tie(b.by, b.op);
  }
};

}  // namespace

void IterationCheck::add(std::span<const TimelineRow> rows) {
  const TimelineRow* before = last_ ? &*last_ : nullptr;
  const TimelineRow* ran = last_ran_ ? &*last_ran_ : nullptr;
  for (const TimelineRow& row : rows) {
    if (before != nullptr) {
      if (!check_order(row, *before)) return;
    } else {
      first_op_ = row.op;
    }
    if (has_run(row)) {
      if (ran != nullptr) check_lane(row, *ran);
      ran = &row;
    }
    note_bound(row);
    highest_rank_ = std::max(highest_rank_, row.rank);
    has_pieces_ = has_pieces_ || row.leg != MessageLeg::whole;
    resources_.add(row, some_in_any_order_);
    messages_.add(row);
    if (before == nullptr || before->rank != row.rank)
      place_ =
          &places_
               .try_emplace(row.rank, row.datacenter, row.device, row.replica, row.op, row.device)
               .first->second;
    check_place(row);
    before = &row;
    ++count_;
  }
  if (before != nullptr) last_ = *before;
  if (ran != nullptr) last_ran_ = *ran;
}

Diagnostics IterationCheck::finish() {
  if (!order_.empty()) return order_;
  if (!ranks_fit()) return first_rank_beyond();
  Diagnostics all = check_bounds();
  all.append(lanes_);
  all.append(resources_.finish());
  all.append(messages_.finish());
  if (has_pieces_) all.append(check_pieces());
  all.append(in_places_);
  return all;
}

bool IterationCheck::check_order(const TimelineRow& row, const TimelineRow& before) {
  if (!order_.empty()) return false;  // rows cannot be looked up
  if (row.op > before.op) return true;
  context_.add(order_, "order of ops", name_of_row(row),
               "stands behind op {} (rows are ordered by op).", before.op);
  return false;
}

/// Ops of a lane lie together: a lane is an order, and a device runs one block at a time. Threads
/// take tasks by rules that rows do not tell. What did not run has no time.
void IterationCheck::check_lane(const TimelineRow& row, const TimelineRow& before) {
  if (before.rank != row.rank || before.lane != row.lane || is_task(row.kind)) return;
  if (any_order_[to_size(row.lane)]) return;
  const bool blocks = is_compute(before.kind) && is_compute(row.kind);
  const std::int64_t earliest = blocks ? before.end_ns : before.start_ns;
  if (row.start_ns < earliest - context_.slack_ns)
    context_.add(lanes_, "lane out of order", name_of_row(row),
                 "starts at {} ns, before op {} of its lane {} at {} ns.", row.start_ns, before.op,
                 blocks ? "ends" : "starts", earliest);
}

void IterationCheck::note_bound(const TimelineRow& row) {
  if (row.bound_by < 0) return;
  least_bound_ = std::min(least_bound_, row.bound_by);
  largest_bound_ = std::max(largest_bound_, row.bound_by);
}

/// A rank is one device in one place.
void IterationCheck::check_place(const TimelineRow& row) {
  Place& seen = *place_;
  seen.last_device = row.device;
  if (row.datacenter != seen.datacenter || row.device != seen.device || row.replica != seen.replica)
    context_.add(in_places_, "rank in two places", name_of_row(row),
                 "has another datacenter, device or replica than op {}.", seen.op);
}

/// Every rank has ops, so there are no more ranks than rows.
bool IterationCheck::ranks_fit() const { return std::cmp_less(highest_rank_, count_); }

Diagnostics IterationCheck::first_rank_beyond() {
  Diagnostics findings;
  for_rows(source_, first_, count_, [&](const TimelineRow& row) {
    if (findings.empty() && !std::cmp_less(row.rank, count_))
      context_.add(findings, "rank that cannot be", name_of_row(row),
                   "is one of only {} ops (lower ranks have none).", count_);
  });
  return findings;
}

/// Ops without a gap need no look-up.
Diagnostics IterationCheck::check_bounds() {
  if (!context_.names->left_out.empty()) return {};  // it may be one of those
  const std::int64_t last_op = last_->op;
  const bool dense = std::cmp_equal(last_op - first_op_, count_ - 1);
  if (dense && largest_bound_ <= last_op && (largest_bound_ < 0 || least_bound_ >= first_op_))
    return {};
  return bounds_without_op();
}

/// Ops ascend, and so do bounds once they are sorted.
Diagnostics IterationCheck::bounds_without_op() {
  ExternalSort<Bound, BoundLess> bounds{context_.sort_bytes};
  for_rows(source_, first_, count_, [&](const TimelineRow& row) {
    if (row.bound_by >= 0) bounds.push({row.bound_by, row.op, row.rank});
  });
  UnorderedFindings findings;
  const Bound* bound = bounds.take();
  const auto report_up_to = [&](std::int64_t op) {  // those below it have none
    for (; bound != nullptr && bound->by < op; bound = bounds.take())
      context_.add(findings, "bound by nothing",
                   {bound->op, key_.schedule, key_.iteration, bound->rank},
                   "is bound by op {} (no such op).", bound->by);
  };
  for_rows(source_, first_, count_, [&](const TimelineRow& row) {
    report_up_to(row.op);
    while (bound != nullptr && bound->by == row.op) bound = bounds.take();
  });
  report_up_to(INT64_MAX);
  return findings.ordered();
}

Diagnostics IterationCheck::check_pieces() {
  PieceCheck pieces{context_, key_};
  const auto device_of = [&](std::int32_t rank) {
    const auto at = places_.find(rank);
    return at == places_.end() ? -1 : at->second.last_device;
  };
  for_rows(source_, first_, count_, [&](const TimelineRow& row) { pieces.add(row, device_of); });
  return pieces.finish();
}

bool ResourceHoldLess::operator()(const ResourceHold& a, const ResourceHold& b) const {
  return std::tie(a.resource, a.exclusion, a.start_ns, a.end_ns, a.op) <
         std::tie(b.resource, b.exclusion, b.start_ns, b.end_ns, b.op);
}

void ResourceCheck::add(const TimelineRow& row, bool some_in_any_order) {
  const bool on_device = is_compute(row.kind) || row.kind == RowKind::prefill;
  const bool alone = row.kind == RowKind::send || (some_in_any_order && on_device && has_run(row));
  if (row.resource < 0 || (!alone && !is_collective(row.kind))) return;
  holds_.push({row.resource, alone ? -1 : row.rank, row.start_ns, row.end_ns, row.op, row.rank});
}

Diagnostics ResourceCheck::finish() {
  Diagnostics findings;
  std::optional<ResourceHold> before;
  while (const ResourceHold* hold = holds_.take()) {
    if (before && before->resource == hold->resource && before->exclusion == hold->exclusion &&
        hold->start_ns < before->end_ns - context_.slack_ns)
      context_.add(findings, "resource held twice",
                   {hold->op, key_.schedule, key_.iteration, hold->rank},
                   "takes resource {} at {} ns (op {} holds it until {}).",
                   context_.names->resources[at(hold->resource)], hold->start_ns, before->op,
                   before->end_ns);
    before = *hold;
  }
  return findings;
}

}  // namespace longhaul::trace
