#include "prefill/play/training_graph.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

constexpr std::uint32_t kNoNode = 0xffffffff;

}  // namespace

/// Gives each op its node, then each node what it waits for.
class TrainingGraph::Builder {
public:
  Builder(const Plan& plan, const OpTimes& times) : plan_{plan}, times_{times} {
    for (const plan::FarDependency& far : plan.extras.far)
      if (far.strength == plan::Strength::strong && far.iterations_back == 0)
        far_[far.op].push_back(far.before);
  }

  void make_nodes(TrainingGraph& graph) {
    node_of_.assign(plan_.ops.size(), kNoNode);
    for (const std::uint32_t op : in_order()) {
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
  /// The first ops of nodes, by planned start, and each after all that it waits for: those that
  /// take no time, as messages over links without limits, start when what they wait for does.
  [[nodiscard]] std::vector<std::uint32_t> in_order() const {
    std::vector<std::uint32_t> ops;
    for (std::uint32_t i = 0; i < plan_.ops.size(); ++i)
      if (is_first(i)) ops.push_back(i);
    std::ranges::stable_sort(ops, [&](std::uint32_t a, std::uint32_t b) {
      return std::pair{times_[a].start, times_[a].end} < std::pair{times_[b].start, times_[b].end};
    });
    const auto later = later_places(ops);
    std::vector<std::uint32_t> open(ops.size()), ordered;
    for (const auto& places : later)
      for (const std::uint32_t place : places) ++open[place];
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t place = 0; place < ops.size(); ++place)
      if (open[place] == 0) ready.push(place);
    while (!ready.empty()) {
      const std::uint32_t place = ready.top();
      ready.pop();
      ordered.push_back(ops[place]);
      for (const std::uint32_t each : later[place])
        if (--open[each] == 0) ready.push(each);
    }
    LONGHAUL_ASSERT(ordered.size() == ops.size(), "{} of {} ops wait for each other",
                    ops.size() - ordered.size(), ops.size());
    return ordered;
  }
  /// By place among the first ops of nodes: the places of those that wait for it.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> later_places(
      const std::vector<std::uint32_t>& ops) const {
    std::vector<std::uint32_t> place_of(plan_.ops.size(), kNoNode);
    for (std::uint32_t place = 0; place < ops.size(); ++place)
      for (const OpId own : ops_of(ops[place])) place_of[index(own)] = place;
    std::vector<std::vector<std::uint32_t>> later(ops.size());
    for (std::uint32_t place = 0; place < ops.size(); ++place)
      for (const OpId own : ops_of(ops[place]))
        for_waits(own, [&](OpId before, Moment) {
          const std::uint32_t from = place_of[index(before)];
          if (from != place && times_[ops[from]].start <= times_[ops[place]].start)
            later[from].push_back(place);
        });
    return later;
  }
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
    for_waits(op, [&](OpId before, Moment moment) {
      const auto from = node_of_[index(before)];
      if (from != own) graph.edges_.push_back({from, moment});
    });
  }
  /// What an op waits for by the plan: dependencies, and the op before it on its lane.
  template <typename Visit>
  void for_waits(OpId op, const Visit& visit) const {
    for (const OpId before : plan_.after_of(op)) visit(before, Moment::end);
    if (const auto far = far_.find(op); far != far_.end())
      for (const OpId before : far->second)
        visit(before, plan_.op(before).kind == OpKind::send ? Moment::hold_end : Moment::end);
    const Lane& lane = plan_.lane_of(op);
    if (op == lane.first) return;
    const OpKind kind = plan_.op(op).kind;
    const bool in_turn = kind == OpKind::compute || kind == OpKind::collective;
    visit(OpId{static_cast<std::uint32_t>(index(op)) - 1},
          in_turn ? Moment::hold_end : Moment::start);
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
  std::unordered_map<OpId, std::vector<OpId>> far_;  ///< of other ranks, by op
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
