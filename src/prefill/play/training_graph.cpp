#include "prefill/play/training_graph.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

constexpr std::uint32_t kNoNode = 0xffffffff;

}  // namespace

/// Gives each op its node, then each node what it waits for.
class TrainingGraph::Builder {
public:
  Builder(const Plan& plan, const OpTimes& times) : plan_{plan}, times_{times} {}

  void make_nodes(TrainingGraph& graph) {
    std::vector<std::uint32_t> ops;
    for (std::uint32_t i = 0; i < plan_.ops.size(); ++i)
      if (is_first(i)) ops.push_back(i);
    std::ranges::stable_sort(ops, [&](std::uint32_t a, std::uint32_t b) {
      return std::pair{times_[a].start, times_[a].end} < std::pair{times_[b].start, times_[b].end};
    });
    node_of_.assign(plan_.ops.size(), kNoNode);
    for (const std::uint32_t op : ops) {
      const auto node = static_cast<std::uint32_t>(graph.nodes_.size());
      graph.nodes_.push_back(node_for(op, graph.gpus()));
      for (const OpId own : ops_of(op)) node_of_[index(own)] = node;
      if (const auto rank = graph.nodes_.back().rank; rank >= 0)
        graph.blocks_[at(rank)].push_back(node);
    }
  }

  void make_edges(TrainingGraph& graph) {
    const auto holders = resource_holders(graph);
    graph.begin_.push_back(0);
    for (std::size_t i = 0; i < graph.nodes_.size(); ++i) {
      for (const OpId op : ops_of(static_cast<std::uint32_t>(index(graph.nodes_[i].op))))
        add_waits(op, graph);
      for (const std::uint32_t holder : holders[i])
        graph.edges_.push_back({holder, Moment::hold_end});
      graph.begin_.push_back(graph.edges_.size());
    }
  }

private:
  [[nodiscard]] bool is_first(std::uint32_t op) const {
    const Op& own = plan_.ops[op];
    if (own.kind == OpKind::recv) return false;
    return own.kind != OpKind::collective || index(plan_.collectives[own.match].front()) == op;
  }
  [[nodiscard]] std::vector<OpId> ops_of(std::uint32_t first) const {
    const Op& op = plan_.ops[first];
    if (op.kind == OpKind::send) return {OpId{first}, OpId{op.match}};
    if (op.kind == OpKind::collective) return plan_.collectives[op.match];
    return {OpId{first}};
  }
  [[nodiscard]] Node node_for(std::uint32_t id, int gpus) const {
    const Op& op = plan_.ops[id];
    const Rank rank = plan_.rank_of(OpId{id});
    Node node{.kind = op.kind, .op = OpId{id}, .hold = op.duration, .planned = times_[id].start};
    if (op.kind == OpKind::compute && static_cast<std::int32_t>(rank) < gpus) {
      node.rank = static_cast<std::int32_t>(rank);
      node.device = plan_.ranks[index(rank)].device;
    }
    if (op.kind == OpKind::send) {
      node.receive = OpId{op.match};
      node.latency = plan_.ops[op.match].duration;
    }
    return node;
  }
  void add_waits(OpId op, TrainingGraph& graph) const {
    const auto own = node_of_[index(op)];
    for (const OpId before : plan_.after_of(op))
      graph.edges_.push_back({node_of_[index(before)], Moment::end});
    const Lane& lane = plan_.lane_of(op);
    if (op == lane.first) return;
    const auto before = node_of_[index(op) - 1];
    if (before == own) return;
    const OpKind kind = plan_.op(op).kind;
    const bool in_turn = kind == OpKind::compute || kind == OpKind::collective;
    graph.edges_.push_back({before, in_turn ? Moment::hold_end : Moment::start});
  }
  /// For each node those that held its resources before it: of a capacity of c, the c-th before.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> resource_holders(
      const TrainingGraph& graph) const {
    std::vector<std::vector<std::uint32_t>> holders(graph.nodes_.size());
    std::vector<std::vector<std::uint32_t>> users(plan_.resources.size());
    for (std::uint32_t node = 0; node < graph.nodes_.size(); ++node)
      for (const ResourceId resource : plan_.resources_of(graph.nodes_[node].op))
        users[index(resource)].push_back(node);
    for (std::size_t i = 0; i < users.size(); ++i) {
      const std::size_t capacity = plan_.resources[i].capacity;
      for (std::size_t use = capacity; use < users[i].size(); ++use)
        holders[users[i][use]].push_back(users[i][use - capacity]);
    }
    return holders;
  }

  const Plan& plan_;
  const OpTimes& times_;
  std::vector<std::uint32_t> node_of_;
};

TrainingGraph::TrainingGraph(const Plan& plan, const OpTimes& times, int gpus)
    : blocks_(to_size(gpus)) {
  for (const OpTime& time : times) makespan_ = std::max(makespan_, time.end);
  Builder builder{plan, times};
  builder.make_nodes(*this);
  builder.make_edges(*this);
  std::vector<std::vector<std::uint32_t>> after(nodes_.size());
  for (std::uint32_t node = 0; node < nodes_.size(); ++node)
    for (const Edge& edge : before(node)) after[edge.from].push_back(node);
  after_begin_.push_back(0);
  for (const auto& own : after) {
    after_.insert(after_.end(), own.begin(), own.end());
    after_begin_.push_back(after_.size());
  }
}

}  // namespace longhaul::prefill
