#include "plan/rewrite/repeated.hpp"

#include <vector>

#include "base/error.hpp"
#include "plan/rewrite/renumber.hpp"

namespace longhaul::plan {
namespace {

void require_repeatable(const Plan& once) {
  const PlanExtras& extras = once.extras;
  if (extras.windows.empty() && extras.far.empty() && extras.sources.empty()) return;
  fail(
      "the plan of {} has windows, far dependencies or sources (an iteration's own time) and "
      "cannot "
      "be repeated. Repeat it before it gets them.",
      once.schedule);
}

class Repeating {
public:
  Repeating(const Plan& once, int times) : once_{once}, times_{times}, ids_{once, times} {}

  [[nodiscard]] Plan run() {
    Plan out = renumbered_frame(once_, [&](OpId id) { return ids_.of(id, 0); });
    repeat_frame(out);
    out.ops.resize(once_.ops.size() * to_size(times_));
    for (Lane& lane : out.lanes) {
      lane.first = OpId{static_cast<std::uint32_t>(index(lane.first) * to_size(times_))};
      lane.count *= static_cast<std::uint32_t>(times_);
    }
    // In order of ids, since dependencies are appended.
    for (const Lane& lane : once_.lanes)
      for (int k = 0; k < times_; ++k)
        for (std::uint32_t i = 0; i < lane.count; ++i)
          add(OpId{static_cast<std::uint32_t>(index(lane.first)) + i}, k, out);
    connect_iterations(out);
    return out;
  }

private:
  /// Orders, collectives and tables: those of the first iteration are there.
  void repeat_frame(Plan& out) const {
    for (int k = 1; k < times_; ++k) {
      const auto id_of = [&](OpId id) { return ids_.of(id, k); };
      for (std::size_t r = 0; r < once_.resources.size(); ++r)
        for (const OpId id : once_.resources[r].order) out.resources[r].order.push_back(id_of(id));
      const Plan again = renumbered_frame(once_, id_of);
      out.collectives.insert(out.collectives.end(), again.collectives.begin(),
                             again.collectives.end());
      out.stepped.insert(out.stepped.end(), again.stepped.begin(), again.stepped.end());
      const auto append = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(out.extras.priorities, again.extras.priorities);
      append(out.extras.slices, again.extras.slices);
      append(out.extras.served, again.extras.served);
    }
    std::ranges::sort(out.extras.slices, {}, &OpSlice::op);
    std::ranges::sort(out.extras.served, {}, &OpServed::op);
  }

  void add(OpId id, int iteration, Plan& out) const {
    Op op = once_.op(id);
    op.after_count = 0;
    op.after = OpId{};
    if (op.kind == OpKind::send || op.kind == OpKind::recv)
      op.match = static_cast<std::uint32_t>(index(ids_.of(OpId{op.match}, iteration)));
    if (is_step(op))
      op.chunk = chunk_of_steps(stepped_of(op) + to_size(iteration) * once_.stepped.size());
    if (op.kind == OpKind::collective)
      op.match += static_cast<std::uint32_t>(to_size(iteration) * once_.collectives.size());
    for (const OpId before : once_.after_of(id)) out.add_after(op, ids_.of(before, iteration));
    out.ops[index(ids_.of(id, iteration))] = op;
  }

  /// Ops that nothing of an iteration waits for but its end: the last of their lanes, on which no
  /// other op depends.
  [[nodiscard]] std::vector<OpId> last_ops() const {
    std::vector<bool> needed(once_.ops.size(), false);
    for (std::size_t i = 0; i < once_.ops.size(); ++i)
      for (const OpId before : once_.after_of(OpId{static_cast<std::uint32_t>(i)}))
        needed[index(before)] = true;
    std::vector<OpId> last;
    for (const Lane& lane : once_.lanes) {
      if (lane.count == 0 || lane.kind == OpKind::send) continue;  // its receive ends later
      const std::uint32_t from = lane.serve == Serve::order ? lane.count - 1 : 0;
      for (std::uint32_t i = from; i < lane.count; ++i)
        if (!needed[index(lane.first) + i])
          last.push_back(OpId{static_cast<std::uint32_t>(index(lane.first)) + i});
    }
    return last;
  }

  void connect_iterations(Plan& out) const {
    const std::vector<OpId> last = last_ops();
    for (int k = 1; k < times_; ++k)
      for (std::size_t i = 0; i < once_.ops.size(); ++i) {
        const OpId id{static_cast<std::uint32_t>(i)};
        const Op& op = once_.op(id);
        if (op.after_count > 0 || op.kind == OpKind::recv) continue;
        for (const OpId before : last)
          out.extras.far.push_back({ids_.of(id, k), ids_.of(before, k - 1), 0, Strength::strong});
      }
  }

  const Plan& once_;
  int times_;
  RepeatedIds ids_;
};

}  // namespace

Plan repeated(const Plan& once, int times) {
  LONGHAUL_ASSERT(times >= 1, "{} iterations", times);
  require_repeatable(once);
  return times == 1 ? once : Repeating{once, times}.run();
}

}  // namespace longhaul::plan
