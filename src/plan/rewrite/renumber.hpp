#pragma once

#include <algorithm>

#include "base/error.hpp"
#include "plan/plan.hpp"

namespace longhaul::plan {

/// What few ops have, with other ids; `id_of` says kNone<OpId> of an op that is gone, and what it
/// had is gone too. Throws Error where it has a source, of a lane or of deadlines, or noise: the
/// ids that it goes by are its own.
template <typename IdOf>
[[nodiscard]] PlanExtras renumbered(PlanExtras extras, IdOf id_of) {
  if (!extras.sources.empty())
    fail(
        "a plan whose lanes draw from sources cannot be rewritten. Rewrite it before it gets "
        "them.");
  if (extras.deadlines.make)
    fail(
        "a plan whose deadlines move cannot be rewritten (their source knows its ops by id). "
        "Rewrite it before they do.");
  if (!extras.announced.empty()) fail("a plan with noise cannot be rewritten. Rewrite it before.");
  extras.noise_ids.clear();
  const auto gone = [](const auto& each) { return each.op == kNone<OpId>; };
  const auto renumber = [&](auto& entries) {
    for (auto& each : entries) each.op = id_of(each.op);
    std::erase_if(entries, gone);
  };
  renumber(extras.windows);
  renumber(extras.priorities);
  renumber(extras.slices);
  renumber(extras.served);
  renumber(extras.tasks);
  for (FarDependency& each : extras.far) each.before = id_of(each.before);
  std::erase_if(extras.far, [](const FarDependency& each) { return each.before == kNone<OpId>; });
  renumber(extras.far);
  std::ranges::sort(extras.slices, {}, &OpSlice::op);
  std::ranges::sort(extras.served, {}, &OpServed::op);
  std::ranges::sort(extras.tasks, {}, &OpTask::op);
  return extras;
}

/// All of a plan but its ops, their dependencies and the places of its lanes, with other ids:
/// `id_of` says that of a side of a message or a member of a collective.
template <typename IdOf>
[[nodiscard]] Plan renumbered_frame(const Plan& plan, IdOf id_of) {
  Plan frame;
  frame.schedule = plan.schedule;
  frame.arrangement = plan.arrangement;
  frame.stages = plan.stages;
  frame.replicas = plan.replicas;
  frame.microbatches = plan.microbatches;
  frame.cell = plan.cell;
  frame.datacenters = plan.datacenters;
  frame.ranks = plan.ranks;
  frame.lanes = plan.lanes;
  frame.resources = plan.resources;
  frame.set_items = plan.set_items;
  frame.set_begin = plan.set_begin;
  frame.collectives = plan.collectives;
  frame.stepped = plan.stepped;
  frame.operators = plan.operators;
  frame.granularity = plan.granularity;
  frame.extras = renumbered(plan.extras, id_of);
  const auto renumber = [&](std::vector<OpId>& ids) {
    for (OpId& id : ids) id = id_of(id);
  };
  for (Resource& resource : frame.resources) renumber(resource.order);
  for (std::vector<OpId>& members : frame.collectives) renumber(members);
  for (SteppedCollective& each : frame.stepped) {
    renumber(each.sends);
    renumber(each.receives);
  }
  return frame;
}

/// An op with other ids: `last_of` says that of a dependency. Those of an op with several lie in
/// Plan::after, at the same place.
template <typename IdOf, typename LastOf>
[[nodiscard]] Op renumbered(Op op, IdOf id_of, LastOf last_of) {
  if (op.kind == OpKind::send || op.kind == OpKind::recv)
    op.match = static_cast<std::uint32_t>(index(id_of(OpId{op.match})));
  if (op.after_count == 1) op.after = last_of(op.after);
  return op;
}

}  // namespace longhaul::plan
