#include "plan/rewrite/beside.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "plan/rewrite/renumber.hpp"

namespace longhaul::plan {
namespace {

OpId id_of(std::size_t op) { return OpId{static_cast<std::uint32_t>(op)}; }

void require_same_ranks(const Plan& first, const Plan& second) {
  const auto same = [](const RankInfo& a, const RankInfo& b) {
    return a.datacenter == b.datacenter && a.node == b.node;
  };
  if (!std::ranges::equal(first.ranks, second.ranks, same))
    fail("{} and {} are plans of other ranks. Lower both for one scenario.", first.schedule,
         second.schedule);
}

/// Puts two plans together: ids are given rank by rank, first those of the first plan's lanes.
class Beside {
public:
  Beside(const Plan& first, const Plan& second) : first_{first}, second_{second} {
    for (const Rank rank : ids<Rank>(static_cast<int>(first.ranks.size()))) {
      number_ops(first_, rank, new_first_);
      number_ops(second_, rank, new_second_);
    }
  }

  [[nodiscard]] Plan run() {
    Plan out = renumbered_frame(first_, [&](OpId id) { return new_first_[index(id)]; });
    join_resources(out);
    join_collectives(out);
    out.lanes.clear();
    out.ops.reserve(next_);
    for (const Rank rank : ids<Rank>(static_cast<int>(first_.ranks.size()))) {
      append(first_, rank, new_first_, out);
      append(second_, rank, new_second_, out);
    }
    return out;
  }

private:
  void number_ops(const Plan& plan, Rank rank, std::vector<OpId>& ids) {
    const OpRange range = ops_of_rank(plan, rank);
    ids.resize(plan.ops.size());
    for (std::uint32_t i = 0; i < range.count; ++i) ids[range.first + i] = id_of(next_++);
  }

  void join_resources(Plan& out) {
    std::map<std::tuple<std::string, ResourceKind>, std::size_t> known;
    for (std::size_t i = 0; i < out.resources.size(); ++i)
      known.emplace(std::tuple{out.resources[i].name, out.resources[i].kind}, i);
    std::vector<ResourceId> joined;
    for (const Resource& resource : second_.resources) {
      const auto [place, is_new] =
          known.emplace(std::tuple{resource.name, resource.kind}, out.resources.size());
      joined.push_back(ResourceId{static_cast<std::uint32_t>(place->second)});
      if (is_new) {
        out.resources.push_back(resource);
        continue;
      }
      Resource& both = out.resources[place->second];
      if (both.capacity != resource.capacity || both.serve != resource.serve)
        fail("{} is another resource in {} than in {}. Lower both for one scenario.", resource.name,
             first_.schedule, second_.schedule);
      both.lanes += resource.lanes;
    }
    sets_of_first_ = out.set_begin.size() - 1;
    const std::uint32_t items = out.set_begin.back();
    for (const ResourceId id : second_.set_items) out.set_items.push_back(joined[index(id)]);
    for (std::size_t i = 1; i < second_.set_begin.size(); ++i)
      out.set_begin.push_back(items + second_.set_begin[i]);
  }

  void join_collectives(Plan& out) const {
    const auto renumbered = [&](std::vector<OpId> ids) {
      for (OpId& id : ids) id = new_second_[index(id)];
      return ids;
    };
    for (const std::vector<OpId>& members : second_.collectives)
      out.collectives.push_back(renumbered(members));
    for (const SteppedCollective& each : second_.stepped) {
      out.stepped.push_back(each);
      out.stepped.back().sends = renumbered(each.sends);
      out.stepped.back().receives = renumbered(each.receives);
    }
  }

  /// The lanes of a rank, and their ops.
  void append(const Plan& plan, Rank rank, const std::vector<OpId>& new_ids, Plan& out) {
    for (const Lane& lane : plan.lanes) {
      const bool is_needed = &plan == &first_ || lane.count > 0;
      if (lane.rank != rank || !is_needed) continue;
      const LaneId id{static_cast<std::uint32_t>(out.lanes.size())};
      out.lanes.push_back(lane);
      out.lanes.back().first = id_of(out.ops.size());
      for (std::uint32_t i = 0; i < lane.count; ++i)
        append_op(plan, id_of(index(lane.first) + i), id, new_ids, out);
    }
  }

  void append_op(const Plan& plan, OpId id, LaneId lane, const std::vector<OpId>& new_ids,
                 Plan& out) const {
    Op op = plan.op(id);
    op.lane = lane;
    op.after_count = 0;
    op.after = OpId{};
    if (op.kind == OpKind::send || op.kind == OpKind::recv)
      op.match = static_cast<std::uint32_t>(index(new_ids[op.match]));
    if (&plan == &second_) {
      op.resources =
          ResourceSetId{static_cast<std::uint32_t>(sets_of_first_ + index(op.resources))};
      if (is_step(op)) op.chunk = chunk_of_steps(first_.stepped.size() + stepped_of(op));
      if (op.kind == OpKind::collective)
        op.match += static_cast<std::uint32_t>(first_.collectives.size());
    }
    for (const OpId before : plan.after_of(id)) out.add_after(op, new_ids[index(before)]);
    out.ops.push_back(op);
  }

  const Plan& first_;
  const Plan& second_;
  std::size_t next_ = 0, sets_of_first_ = 0;
  std::vector<OpId> new_first_, new_second_;  ///< by op of either
};

}  // namespace

Plan beside(const Plan& first, const Plan& second) {
  require_same_ranks(first, second);
  LONGHAUL_ASSERT(second.operators == nullptr && second.granularity == Granularity::blocks &&
                      second.extras.windows.empty() && second.extras.far.empty() &&
                      second.extras.priorities.empty() && second.extras.slices.empty() &&
                      second.extras.sources.empty(),
                  "{} has more than messages", second.schedule);
  return Beside{first, second}.run();
}

}  // namespace longhaul::plan
