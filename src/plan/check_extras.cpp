#include "plan/check_extras.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::plan {
namespace {

bool chooses(const Lane& lane) { return lane.serve != Serve::order; }
bool chooses(const Resource& resource) { return resource.serve != Serve::order; }

template <typename Item>
bool some_choose(const std::vector<Item>& items) {
  return std::ranges::any_of(items, [](const Item& item) { return chooses(item); });
}

/// The ops that strongly depend on each op, whatever the iteration: a send and its receive, and the
/// members of a collective, on each other.
class Dependents {
public:
  explicit Dependents(const Plan& plan) : plan_{plan}, first_(plan.ops.size() + 1, 0) {
    each_pair([this](OpId before, OpId) { ++first_[index(before) + 1]; });
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    all_.resize(first_.back());
    std::vector<std::uint32_t> at = first_;
    each_pair([&](OpId before, OpId op) { all_[at[index(before)]++] = op; });
  }
  /// Marks what depends on the marked ops.
  void spread(std::vector<std::uint8_t>& marks) const {
    std::vector<OpId> reached;
    for (std::size_t i = 0; i < marks.size(); ++i)
      if (marks[i] != 0) reached.push_back(OpId{static_cast<std::uint32_t>(i)});
    while (!reached.empty()) {
      const std::size_t from = index(reached.back());
      reached.pop_back();
      for (std::uint32_t k = first_[from]; k < first_[from + 1]; ++k) {
        if (marks[index(all_[k])] != 0) continue;
        marks[index(all_[k])] = 1;
        reached.push_back(all_[k]);
      }
    }
  }

private:
  template <typename Use>
  void each_pair(Use&& use) {
    for (std::uint32_t i = 0; i < plan_.ops.size(); ++i) {
      const Op& op = plan_.ops[i];
      for (const OpId before : plan_.after_of(OpId{i})) use(before, OpId{i});
      if (op.kind == OpKind::send || op.kind == OpKind::recv) use(OpId{op.match}, OpId{i});
      if (op.kind != OpKind::collective) continue;
      for (const OpId member : plan_.collectives[op.match]) use(member, OpId{i});
    }
    for (const FarDependency& far : plan_.extras.far)
      if (far.strength == Strength::strong) use(far.before, far.op);
  }
  const Plan& plan_;
  std::vector<std::uint32_t> first_;
  std::vector<OpId> all_;
};

std::optional<Refusal> why_windows_unsound(const Plan& plan) {
  std::vector<std::uint8_t> seen(plan.ops.size(), 0);
  for (const OpWindow& window : plan.extras.windows) {
    const std::string op = to_text(plan, window.op);
    if (window.deadline < window.not_before)
      return refused("the deadline of {} ({} ns) is before its not_before ({} ns). Swap them.", op,
                     window.deadline.count(), window.not_before.count());
    if (seen[index(window.op)]++ != 0)
      return refused("{} has two windows (an op has one). Leave one out.", op);
    const OpKind kind = plan.op(window.op).kind;
    if (kind != OpKind::compute && kind != OpKind::send)
      return refused("{} has a window (blocks and sends have). Give it to the send.", op);
  }
  return std::nullopt;
}

std::optional<Refusal> why_far_unsound(const Plan& plan) {
  std::vector<std::uint8_t> versions(plan.ops.size(), 0);
  for (const FarDependency& far : plan.extras.far) {
    const bool weak = far.strength == Strength::weak;
    if (far.iterations_back < 0)
      return refused(
          "{} has a {} on a later iteration ({} ahead). Name an earlier one, or its own.",
          to_text(plan, far.op), weak ? "weak dependency" : "dependency", -far.iterations_back);
    if (weak && versions[index(far.op)]++ != 0)
      return refused("{} has two weak dependencies (it has one version). Leave one out.",
                     to_text(plan, far.op));
  }
  return std::nullopt;
}

/// A lane or resource that chooses shares its ops with no other rule.
std::optional<Refusal> why_choice_unsound(const Plan& plan) {
  if (!some_choose(plan.lanes) && !some_choose(plan.resources)) return std::nullopt;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{i};
    const Serve serve = serving_of(plan, id);
    if (serve == Serve::order || plan.op(id).kind == OpKind::recv) continue;
    if (plan.op(id).kind == OpKind::collective)
      return refused("{} is one op, and what it holds chooses. Make it messages.",
                     to_text(plan, id));
    if (plan.resources_of(id).empty())
      return refused("{} is on a lane that chooses, but holds nothing. Give it a resource.",
                     to_text(plan, id));
    for (const ResourceId held : plan.resources_of(id)) {
      const Resource& resource = plan.resources[index(held)];
      if (resource.serve == serve ||
          (resource.serve == Serve::order && resource.lanes <= 1 && resource.order.empty()))
        continue;
      return refused("{} is picked by {}, but \"{}\", which it holds, serves by {}. Give both one.",
                     to_text(plan, id), to_string(serve), resource.name, to_string(resource.serve));
    }
  }
  return std::nullopt;
}

std::optional<Refusal> why_resources_unsound(const Plan& plan) {
  for (const Resource& resource : plan.resources) {
    if (resource.capacity == 0)
      return refused("\"{}\" has a capacity of 0 (no op could hold it). Give it 1 or more.",
                     resource.name);
    if (resource.serve != Serve::order && !resource.order.empty())
      return refused("\"{}\" serves by {} and has a stated order. Leave one out.", resource.name,
                     to_string(resource.serve));
    if (!plan.extras.overlap.none() && resource.kind == ResourceKind::device &&
        resource.serve == Serve::order &&
        (resource.lanes > 1 || resource.capacity != 1 || !resource.order.empty()))
      return refused(
          "\"{}\" is held by several lanes in order of readiness, and its computation slows beside "
          "messages (no one can say ahead when it is free). Let it serve by arrival or deadline.",
          resource.name);
  }
  for (const NetworkLevel level : every<NetworkLevel>())
    if (plan.extras.overlap.at(level) < Overlap::kNone)
      return refused("the slowdown beside messages of level {} is {} (below 1). Give 1 or more.",
                     to_string(level),
                     static_cast<double>(plan.extras.overlap.at(level)) / Overlap::kNone);
  return std::nullopt;
}

/// What may not run has no place in a stated order, and no members that wait for it.
std::optional<Refusal> why_order_unsound(const Plan& plan) {
  if (plan.extras.windows.empty() && plan.extras.sources.empty()) return std::nullopt;
  const auto marks = ops_that_may_not_run(plan, MayNotRun::optional_or_sourced);
  for (const Resource& resource : plan.resources)
    for (const OpId id : resource.order)
      if (marks[index(id)] != 0)
        return refused("{} may not run, but has a place in the order of \"{}\". State no order.",
                       to_text(plan, id), resource.name);
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i)
    if (marks[i] != 0 && plan.ops[i].kind == OpKind::collective)
      return refused("{} is one op and may not run. Make it messages.", to_text(plan, OpId{i}));
  std::vector<std::uint8_t> sourced(plan.lanes.size(), 0);
  for (const LaneSource& source : plan.extras.sources) {
    const Lane& lane = plan.lanes[index(source.lane)];
    if (sourced[index(source.lane)]++ != 0)
      return refused("lane \"{}\" of rank {} has two sources. Leave one out.", lane.name,
                     index(lane.rank));
    if (lane.kind == OpKind::recv || lane.kind == OpKind::collective || chooses(lane))
      return refused(
          "lane \"{}\" of rank {} has a source, which lanes of blocks and sends may have that do "
          "not choose themselves. Leave it out.",
          lane.name, index(lane.rank));
  }
  return std::nullopt;
}

std::optional<Refusal> why_stream_unsound(const Plan& plan, const Stream& stream) {
  if (stream.iterations < 1)
    return refused("a stream of {} iterations has no first iteration. Ask for 1 or more.",
                   stream.iterations);
  if (stream.first < 0 || stream.first >= stream.iterations)
    return refused("a stream of {} iterations cannot go on with iteration {}. Name one of them.",
                   stream.iterations, stream.first);
  if (!std::ranges::is_sorted(stream.settings, {}, &StreamSetting::from_iteration) ||
      (!stream.settings.empty() && stream.settings.front().from_iteration < 0))
    return refused("the settings of a stream are not in order of iteration. Sort them.");
  if (stream.iterations == 1 || plan.extras.windows.empty()) return std::nullopt;
  const auto marks = ops_that_may_not_run(plan, MayNotRun::optional);
  if (std::ranges::find(marks, 0) == marks.end())
    return refused(
        "all ops of the stream are optional (no iteration would begin). Leave the window "
        "of one out.");
  return std::nullopt;
}

}  // namespace

Overlap Overlap::of(double node, double datacenter, double wan) {
  const auto millionths = [](double slowdown) {
    return std::llround(slowdown * static_cast<double>(kNone));
  };
  return {{millionths(node), millionths(datacenter), millionths(wan)}};
}

bool needs_order_of_time(const Plan& plan) {
  const PlanExtras& extras = plan.extras;
  return !extras.windows.empty() || !extras.far.empty() || !extras.sources.empty() ||
         !extras.overlap.none() || some_choose(plan.lanes) || some_choose(plan.resources);
}

bool needs_event_player(const Plan& plan) {
  const PlanExtras& extras = plan.extras;
  if (!extras.windows.empty() || !extras.far.empty() || !extras.sources.empty()) return true;
  if (some_choose(plan.lanes) || some_choose(plan.resources)) return true;
  for (std::size_t i = 1; i < plan.lanes.size(); ++i)
    if (plan.lanes[i].kind == OpKind::compute && plan.lanes[i - 1].rank == plan.lanes[i].rank &&
        plan.lanes[i - 1].kind == OpKind::compute)
      return true;
  return false;
}

std::optional<Refusal> why_unsound(const Plan& plan, const Stream& stream) {
  if (auto why = why_resources_unsound(plan)) return why;
  if (auto why = why_windows_unsound(plan)) return why;
  if (auto why = why_far_unsound(plan)) return why;
  if (auto why = why_choice_unsound(plan)) return why;
  if (auto why = why_order_unsound(plan)) return why;
  return why_stream_unsound(plan, stream);
}

std::vector<std::uint8_t> ops_that_may_not_run(const Plan& plan, MayNotRun which) {
  std::vector<std::uint8_t> marks(plan.ops.size(), 0);
  for (const OpWindow& window : plan.extras.windows) marks[index(window.op)] = 1;
  if (which == MayNotRun::optional_or_sourced) {
    for (const LaneSource& source : plan.extras.sources) {
      const Lane& lane = plan.lanes[index(source.lane)];
      std::fill_n(marks.begin() + static_cast<std::ptrdiff_t>(index(lane.first)), lane.count,
                  std::uint8_t{1});
    }
  }
  if (std::ranges::find(marks, 1) != marks.end()) Dependents{plan}.spread(marks);
  return marks;
}

Serve serving_of(const Plan& plan, OpId id) {
  const Serve own = plan.lane_of(id).serve;
  if (own != Serve::order) return own;
  for (const ResourceId held : plan.resources_of(id))
    if (plan.resources[index(held)].serve != Serve::order) return plan.resources[index(held)].serve;
  return Serve::order;
}

}  // namespace longhaul::plan
