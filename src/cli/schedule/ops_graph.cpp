#include "cli/schedule/ops_graph.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collective/iteration/iteration_of.hpp"
#include "schedule/block_operators.hpp"

namespace longhaul::cli {
namespace {

using collective::Communication;
using collective::CommunicationId;
using collective::Operation;
using collective::OperationId;
using collective::StageWork;

constexpr std::size_t kMostNodes = 20'000;

class GraphWriter {
public:
  explicit GraphWriter(const collective::IterationPlan& plan)
      : plan_{plan},
        ranges_{schedule::operators_of_chunks(*plan.schedule, *plan.scenario)},
        all_{*plan.scenario->operators.all} {}

  [[nodiscard]] OperatorGraph run() && {
    graph_.dot =
        fmt::format("digraph \"{}\" {{\n  rankdir=LR; node [shape=box];\n", plan_.schedule->name);
    for (const DeviceId stage : plan_.stages.ids()) add_stage(stage);
    for (const DeviceId stage : plan_.stages.ids()) add_messages(stage);
    for (const auto& [from, to] : edges_) graph_.dot += fmt::format("  {} -> {};\n", from, to);
    graph_.dot += "}\n";
    graph_.edges = edges_.size();
    return std::move(graph_);
  }

private:
  static std::string name_of(DeviceId stage, OperationId id) {
    return fmt::format("s{}o{}", number(stage), index(id));
  }
  static std::string name_of(DeviceId stage, CommunicationId id) {
    return fmt::format("s{}c{}", number(stage), index(id));
  }

  void add_node(const std::string& name, const std::string& kind, const std::string& label,
                const char* colour) {
    if (++graph_.nodes > kMostNodes)
      fail(
          "the graph has more than {} operators (no one can look at it). Take fewer layers or "
          "microbatches.",
          kMostNodes);
    ++graph_.kinds[kind];
    graph_.dot +=
        fmt::format("    {} [label=\"{}\", style=filled, fillcolor={}];\n", name, label, colour);
  }

  [[nodiscard]] std::string kind_of(const Operation& operation) const {
    if (operation.place < 0) return "optimizer";
    const Operator& own = all_[ranges_[operation.chunk].first + to_size(operation.place)];
    return fmt::format("{} {}", to_string(operation.work), own.name);
  }
  [[nodiscard]] std::string label_of(const Operation& operation) const {
    if (operation.place < 0) return fmt::format("optimizer, chunk {}", number(operation.chunk));
    const Operator& own = all_[ranges_[operation.chunk].first + to_size(operation.place)];
    const std::string layer = own.layer < 0 ? "" : fmt::format(", layer {}", own.layer);
    return fmt::format("{}{}\\nmicrobatch {}", kind_of(operation), layer,
                       number(operation.microbatch));
  }

  void add_stage(DeviceId stage) {
    const StageWork& work = plan_.stages[stage];
    graph_.dot += fmt::format("  subgraph cluster_{0} {{ label=\"stage {0}\";\n", number(stage));
    for (const OperationId id : work.order) {
      const Operation& operation = work.operations[id];
      const bool forward = operation.work == BlockKind::F || operation.work == BlockKind::R;
      add_node(name_of(stage, id), kind_of(operation), label_of(operation),
               operation.place < 0 ? "khaki"
               : forward           ? "lightblue"
                                   : "palegreen");
    }
    for (const CommunicationId id : work.communications.ids()) {
      const Communication& each = work.communications[id];
      const std::string kind = fmt::format("{} {}", to_string(each.traffic), to_string(each.kind));
      add_node(name_of(stage, id), kind, fmt::format("{}\\n{} bytes", kind, each.size.count()),
               "lightgray");
    }
    graph_.dot += "  }\n";
    for (std::size_t i = 1; i < work.order.size(); ++i)
      edges_.emplace(name_of(stage, work.order[i - 1]), name_of(stage, work.order[i]));
    for (const CommunicationId id : work.communications.ids()) add_edges(stage, id);
  }

  void add_edges(DeviceId stage, CommunicationId id) {
    const Communication& each = plan_.stages[stage].communications[id];
    for (const OperationId before : each.needs)
      edges_.emplace(name_of(stage, before), name_of(stage, id));
    for (const CommunicationId before : each.follows)
      edges_.emplace(name_of(stage, before), name_of(stage, id));
    for (const OperationId after : each.needed_by)
      edges_.emplace(name_of(stage, id), name_of(stage, after));
  }

  /// A node for each message that a stage takes, between what makes it and what needs it.
  void add_messages(DeviceId stage) {
    const StageWork& work = plan_.stages[stage];
    for (const OperationId id : work.order)
      for (const OpId receive : inputs(stage, work.operations[id].input))
        edges_.emplace(message(receive), name_of(stage, id));
    for (const CommunicationId id : work.communications.ids())
      for (const OpId receive : inputs(stage, work.communications[id].input))
        edges_.emplace(message(receive), name_of(stage, id));
  }
  [[nodiscard]] std::vector<OpId> inputs(DeviceId stage, std::int32_t position) const {
    if (position < 0) return {};
    const Lane& lane = lane_of(stage);
    const auto before = plan_.base->after_of(
        OpId{static_cast<std::uint32_t>(index(lane.first)) + static_cast<std::uint32_t>(position)});
    return {before.begin(), before.end()};
  }
  [[nodiscard]] const Lane& lane_of(DeviceId stage) const {
    return collective::compute_lane(*plan_.base, plan_.scenario->rank(ReplicaId{0}, stage));
  }

  std::string message(OpId receive) {
    const std::string name = fmt::format("m{}", index(receive));
    if (!messages_.insert(name).second) return name;
    const Op& op = plan_.base->op(receive);
    add_node(name, "send",
             fmt::format("send {}{}.{}", to_string(op.block_kind), number(op.chunk),
                         number(op.microbatch)),
             "lightgray");
    const OpId send{op.match};
    const DeviceId from = plan_.base->ranks[index(plan_.base->rank_of(send))].device;
    for (const OpId before : plan_.base->after_of(send)) add_source(from, before, name);
    return name;
  }
  /// What leaves takes the result of the block's last operation, and of the collective after it.
  void add_source(DeviceId from, OpId before, const std::string& message) {
    const StageWork& work = plan_.stages[from];
    const auto position = static_cast<std::uint32_t>(index(before) - index(lane_of(from).first));
    for (const OperationId id : work.order) {
      const Operation& operation = work.operations[id];
      if (operation.position != position) continue;
      edges_.emplace(name_of(from, id), message);
      for (const CommunicationId sum : work.communications.ids())
        if (work.communications[sum].completes == static_cast<std::int32_t>(operation.block))
          edges_.emplace(name_of(from, sum), message);
    }
  }

  const collective::IterationPlan& plan_;
  IndexedVector<ChunkId, schedule::OperatorRange> ranges_;
  const std::vector<Operator>& all_;
  OperatorGraph graph_;
  std::set<std::pair<std::string, std::string>> edges_;
  std::set<std::string> messages_;
};

}  // namespace

OperatorGraph operator_graph(const collective::IterationPlan& plan) {
  return GraphWriter{plan}.run();
}

}  // namespace longhaul::cli
