#include <algorithm>
#include <limits>

#include "base/index.hpp"
#include "plan/export/export.hpp"
#include "plan/export/goal_hosts.hpp"
#include "trace/export/text_writer.hpp"

namespace longhaul::plan {
namespace {

/// LogGOPSim charges size - 1 bytes.
std::int64_t written_size(Bytes size) { return size.count() + 1; }

class GoalWriter {
public:
  GoalWriter(const Plan& plan, GoalSimulator simulator, std::ostream& out)
      : plan_{plan},
        hosts_{plan, simulator},
        text_{out, std::numeric_limits<std::int64_t>::max()},
        lanes_(plan.ranks.size()),
        tag_(plan.ops.size()),
        ring_tag_(plan.collectives.size()) {
    for (const Lane& lane : plan.lanes) lanes_[index(lane.rank)].push_back(&lane);
    count_tags();
  }

  void write() {
    text_.print("num_ranks {}\n", hosts_.ranks().size());
    for (std::size_t host = 0; host < hosts_.ranks().size(); ++host) {
      text_.print("\nrank {} {{\n", host);
      // A label must stand before all lines that name it.
      for_each_lane(host, [this](const Lane& lane) { write_ops(lane); });
      for_each_lane(host, [this](const Lane& lane) { write_dependencies(lane); });
      text_.print("}}\n");
    }
    text_.flush();
  }

private:
  void count_tags() {
    std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> next;  // of ordered pairs of hosts
    for (std::size_t i = 0; i < plan_.ops.size(); ++i) {
      const Op& op = plan_.ops[i];
      if (op.kind != OpKind::send) continue;
      const Rank from = plan_.rank_of(OpId{static_cast<std::uint32_t>(i)});
      tag_[i] = tag_[op.match] = next[{hosts_.of(from), hosts_.of(op.peer)}]++;
    }
    for (std::size_t group = 0; group < plan_.collectives.size(); ++group) {
      const auto& members = plan_.collectives[group];
      for (std::size_t i = 0; i < members.size(); ++i) {
        const Rank to = plan_.rank_of(members[(i + 1) % members.size()]);
        std::uint32_t& free = next[{hosts_.of(plan_.rank_of(members[i])), hosts_.of(to)}];
        ring_tag_[group].push_back(free);
        free += steps_of(members);
      }
    }
  }

  [[nodiscard]] std::uint32_t steps_of(const std::vector<OpId>& members) const {
    const auto once = static_cast<std::uint32_t>(members.size()) - 1;
    return once * static_cast<std::uint32_t>(facts_of(plan_.op(members.front()).collective).rounds);
  }

  template <typename Visit>
  void for_each_lane(std::size_t host, Visit visit) const {
    for (const Rank rank : hosts_.ranks()[host])
      for (const Lane* lane : lanes_[index(rank)]) visit(*lane);
  }
  template <typename Visit>
  static void for_each(const Lane& lane, Visit visit) {
    for (std::uint32_t i = 0; i < lane.count; ++i)
      visit(OpId{static_cast<std::uint32_t>(index(lane.first)) + i});
  }

  void write_ops(const Lane& lane) {
    for_each(lane, [&](OpId id) {
      const Op& op = plan_.op(id);
      const std::string label = fmt::format("l{}", index(id));
      switch (op.kind) {
        case OpKind::compute:
          text_.print("{}: calc {} cpu {}\n", label, op.duration.count(),
                      hosts_.device_of(lane.rank));
          break;
        case OpKind::send:
          write_send(label, lane.rank, op.peer, op.size, tag_[index(id)],
                     hosts_.interface_of_messages(lane.rank, op.peer));
          break;
        case OpKind::recv:
          write_receive(label, lane.rank, op.peer, op.size, tag_[index(id)]);
          break;
        case OpKind::collective: write_ring(id); break;
      }
    });
  }

  /// Inside a host nothing is sent: what it stands for is a moment, and a dependency.
  void write_moment(const std::string& label, Rank rank) {
    text_.print("{}: calc 0 cpu {}\n", label, hosts_.communication_of(rank));
  }
  void write_send(const std::string& label, Rank from, Rank to, Bytes size, std::uint32_t tag,
                  std::size_t interface) {
    if (hosts_.share_one(from, to)) return write_moment(label, from);
    text_.print("{}: send {}b to {} tag {} cpu {} nic {}\n", label, written_size(size),
                hosts_.of(to), tag, hosts_.communication_of(from), interface);
  }
  void write_receive(const std::string& label, Rank to, Rank from, Bytes size, std::uint32_t tag) {
    if (hosts_.share_one(from, to)) return write_moment(label, to);
    text_.print("{}: recv {}b from {} tag {} cpu {} nic 0\n", label, written_size(size),
                hosts_.of(from), tag, hosts_.communication_of(to));
  }

  /// A member of a collective, and those beside it on the ring.
  struct Member {
    std::size_t place, place_before;
    OpId op_before;
    Rank before, self, after;
  };
  [[nodiscard]] Member member(OpId id) const {
    const auto& members = plan_.collectives[plan_.op(id).match];
    const auto place = at(std::ranges::find(members, id) - members.begin());
    const std::size_t n = members.size();
    const std::size_t before = (place + n - 1) % n;
    return {place,
            before,
            members[before],
            plan_.rank_of(members[before]),
            plan_.rank_of(id),
            plan_.rank_of(members[(place + 1) % n])};
  }

  /// `l9` stands for the end of the collective, as that of every other op; `l9b` for its beginning,
  /// `l9s0`, `l9r0`, ... for the two sides of its steps.
  void write_ring(OpId id) {
    const Op& op = plan_.op(id);
    const auto& members = plan_.collectives[op.match];
    const Member here = member(id);
    const auto n = static_cast<std::int64_t>(members.size());
    const Bytes piece = (op.size + Bytes{n - 1}) / n;
    const std::vector<std::uint32_t>& tags = ring_tag_[op.match];
    const std::size_t interface = hosts_.interface_of_ring(here.self, here.after);
    write_moment(fmt::format("l{}b", index(id)), here.self);
    for (std::uint32_t step = 0; step < steps_of(members); ++step) {
      write_send(fmt::format("l{}s{}", index(id), step), here.self, here.after, piece,
                 tags[here.place] + step, interface);
      write_receive(fmt::format("l{}r{}", index(id), step), here.self, here.before, piece,
                    tags[here.place_before] + step);
    }
    write_moment(fmt::format("l{}", index(id)), here.self);
  }

  void write_dependencies(const Lane& lane) {
    for_each(lane, [&](OpId id) {
      const Op& op = plan_.op(id);
      const bool ring = op.kind == OpKind::collective;
      const char* const begin = ring ? "b" : "";
      for (const OpId before : plan_.after_of(id))
        text_.print("l{}{} requires l{}\n", index(id), begin, index(before));
      if (ring) write_ring_dependencies(id);
      if (op.kind == OpKind::recv && hosts_.share_one(lane.rank, op.peer))
        text_.print("l{} requires l{}\n", index(id), op.match);
      // A send is over when it begins, if it is eager, so that the next may leave while the one
      // before is under way; it waits for their interface.
      if (id != lane.first && op.kind != OpKind::recv)
        text_.print("l{}{} requires l{}\n", index(id), begin, index(id) - 1);
    });
  }

  void write_ring_dependencies(OpId id) {
    const std::uint32_t steps = steps_of(plan_.collectives[plan_.op(id).match]);
    const std::size_t l = index(id);
    const Member here = member(id);
    for (std::uint32_t step = 0; step < steps; ++step) {
      text_.print("l{}r{} requires l{}b\n", l, step, l);
      if (hosts_.share_one(here.before, here.self))
        text_.print("l{}r{} requires l{}s{}\n", l, step, index(here.op_before), step);
      if (step == 0) {
        text_.print("l{}s0 requires l{}b\n", l, l);
      } else {
        text_.print("l{}s{} requires l{}r{}\n", l, step, l, step - 1);
      }
      text_.print("l{} requires l{}r{}\n", l, l, step);
    }
  }

  const Plan& plan_;
  GoalHosts hosts_;
  trace::TextWriter text_;
  std::vector<std::vector<const Lane*>> lanes_;       ///< index: rank
  std::vector<std::uint32_t> tag_;                    ///< index: op
  std::vector<std::vector<std::uint32_t>> ring_tag_;  ///< index: collective, place of the sender
};

}  // namespace

void export_goal(const Plan& plan, GoalSimulator simulator, std::ostream& out) {
  GoalWriter{plan, simulator, out}.write();
}

}  // namespace longhaul::plan
