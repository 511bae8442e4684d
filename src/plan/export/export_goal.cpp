#include <algorithm>
#include <limits>

#include "base/index.hpp"
#include "plan/channels.hpp"
#include "plan/export/export.hpp"
#include "trace/export/text_writer.hpp"

namespace longhaul::plan {
namespace {

/// LogGOPSim charges size - 1 bytes, so that nothing may be empty.
std::int64_t sent_bytes(Bytes size) { return std::max<std::int64_t>(size.count(), 1); }

class GoalWriter {
public:
  GoalWriter(const Plan& plan, std::ostream& out)
      : plan_{plan},
        channels_{plan},
        text_{out, std::numeric_limits<std::int64_t>::max()},
        tag_(plan.ops.size()),
        ring_tag_(plan.collectives.size()) {
    count_tags();
  }

  void write() {
    text_.print("num_ranks {}\n", plan_.ranks.size());
    std::size_t lane = 0;
    for (std::size_t rank = 0; rank < plan_.ranks.size(); ++rank) {
      const std::size_t first = lane;
      while (lane < plan_.lanes.size() && index(plan_.lanes[lane].rank) == rank) ++lane;
      text_.print("\nrank {} {{\n", rank);
      // A label must stand before all lines that name it.
      for (std::size_t i = first; i < lane; ++i) write_ops(plan_.lanes[i]);
      for (std::size_t i = first; i < lane; ++i) write_dependencies(plan_.lanes[i]);
      text_.print("}}\n");
    }
    text_.flush();
  }

private:
  void count_tags() {
    std::map<std::pair<Rank, Rank>, std::uint32_t> next;
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const Op& op = plan_.ops[i];
      if (op.kind != OpKind::send) continue;
      const Rank from = plan_.rank_of(OpId{static_cast<std::uint32_t>(i)});
      tag_[i] = tag_[op.match] = next[{from, op.peer}]++;
    }
    for (std::size_t group = 0; group < plan_.collectives.size(); ++group) {
      // One tag a step for all hops: larger than any that a hop has used so far.
      const auto& members = plan_.collectives[group];
      std::uint32_t free = 0;
      const auto hops = hops_of(members);
      for (const auto& hop : hops) free = std::max(free, next[hop]);
      ring_tag_[group] = free;
      for (const auto& hop : hops) next[hop] = free + steps_of(members);
    }
  }

  [[nodiscard]] std::vector<std::pair<Rank, Rank>> hops_of(const std::vector<OpId>& members) const {
    std::vector<std::pair<Rank, Rank>> hops;
    for (std::size_t i = 0; i < members.size(); ++i)
      hops.emplace_back(plan_.rank_of(members[i]),
                        plan_.rank_of(members[(i + 1) % members.size()]));
    return hops;
  }
  [[nodiscard]] std::uint32_t steps_of(const std::vector<OpId>& members) const {
    const auto once = static_cast<std::uint32_t>(members.size()) - 1;
    return once * static_cast<std::uint32_t>(facts_of(plan_.op(members.front()).collective).rounds);
  }

  template <typename Visit>
  static void for_each(const Lane& lane, Visit visit) {
    for (std::uint32_t i = 0; i < lane.count; ++i)
      visit(OpId{static_cast<std::uint32_t>(index(lane.first)) + i});
  }

  void write_ops(const Lane& lane) {
    for_each(lane, [&](OpId id) {
      const Op& op = plan_.op(id);
      switch (op.kind) {
        case OpKind::compute: text_.print("l{}: calc {}\n", index(id), op.duration.count()); break;
        case OpKind::send: {
          const int number = channels_.of_message(lane.rank, op.peer);
          text_.print("l{}: send {}b to {} tag {} cpu {} nic {}\n", index(id), sent_bytes(op.size),
                      index(op.peer), tag_[index(id)], number, number);
          break;
        }
        case OpKind::recv: {
          const int number = channels_.of_message(op.peer, lane.rank);
          text_.print("l{}: recv {}b from {} tag {} cpu {} nic {}\n", index(id),
                      sent_bytes(op.size), index(op.peer), tag_[index(id)], number, number);
          break;
        }
        case OpKind::collective: write_ring(id); break;
      }
    });
  }

  struct Neighbours {
    Rank before, after;
  };
  [[nodiscard]] Neighbours neighbours(OpId id) const {
    const auto& members = plan_.collectives[plan_.op(id).match];
    const auto self = at(std::ranges::find(members, id) - members.begin());
    const std::size_t n = members.size();
    return {plan_.rank_of(members[(self + n - 1) % n]), plan_.rank_of(members[(self + 1) % n])};
  }

  /// `l9` stands for the end of the collective, as that of every other op; `l9b` for its beginning,
  /// `l9s0`, `l9r0`, ... for the two sides of its steps.
  void write_ring(OpId id) {
    const auto& members = plan_.collectives[plan_.op(id).match];
    const auto [before, after] = neighbours(id);
    const Rank self = plan_.rank_of(id);
    const auto n = static_cast<std::int64_t>(members.size());
    const std::int64_t bytes = sent_bytes((plan_.op(id).size + Bytes{n - 1}) / n);
    const int to = channels_.of_ring(self, after);
    const int from = channels_.of_ring(before, self);
    text_.print("l{}b: calc 0 cpu {}\n", index(id), to);
    for (std::uint32_t step = 0; step < steps_of(members); ++step) {
      const std::uint32_t tag = ring_tag_[plan_.op(id).match] + step;
      text_.print("l{}s{}: send {}b to {} tag {} cpu {} nic {}\n", index(id), step, bytes,
                  index(after), tag, to, to);
      text_.print("l{}r{}: recv {}b from {} tag {} cpu {} nic {}\n", index(id), step, bytes,
                  index(before), tag, from, from);
    }
    text_.print("l{}: calc 0 cpu {}\n", index(id), from);
  }

  void write_dependencies(const Lane& lane) {
    for_each(lane, [&](OpId id) {
      const Op& op = plan_.op(id);
      const bool ring = op.kind == OpKind::collective;
      const char* const begin = ring ? "b" : "";
      for (const OpId before : plan_.after_of(id))
        text_.print("l{}{} requires l{}\n", index(id), begin, index(before));
      if (ring) write_ring_dependencies(id);
      if (id == lane.first) return;
      const std::size_t previous = index(id) - 1;
      // The next message may leave while the one before is still under way.
      const bool in_full = op.kind == OpKind::compute || ring;
      if (op.kind != OpKind::recv)
        text_.print("l{}{} {} l{}\n", index(id), begin, in_full ? "requires" : "irequires",
                    previous);
    });
  }

  void write_ring_dependencies(OpId id) {
    const std::uint32_t steps = steps_of(plan_.collectives[plan_.op(id).match]);
    const std::size_t l = index(id);
    for (std::uint32_t step = 0; step < steps; ++step) {
      text_.print("l{}r{} requires l{}b\n", l, step, l);
      if (step == 0) {
        text_.print("l{}s0 requires l{}b\n", l, l);
      } else {
        text_.print("l{}s{} requires l{}r{}\n", l, step, l, step - 1);
      }
      text_.print("l{} requires l{}r{}\n", l, l, step);
    }
  }

  const Plan& plan_;
  Channels channels_;
  trace::TextWriter text_;
  std::vector<std::uint32_t> tag_;       ///< index: op
  std::vector<std::uint32_t> ring_tag_;  ///< index: collective; of its first step
};

}  // namespace

void export_goal(const Plan& plan, std::ostream& out) { GoalWriter{plan, out}.write(); }

}  // namespace longhaul::plan
