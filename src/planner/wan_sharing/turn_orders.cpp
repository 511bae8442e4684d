#include "base/index.hpp"
#include "planner/wan_sharing/turn_problem.hpp"

namespace longhaul::planner {

TurnOrders::TurnOrders(const TurnProblem& problem) : rows{problem.rows} {
  for (const TurnProblem::Queue& queue : problem.queues) turns.push_back(queue.messages);
}

Schedule to_schedule(const TurnProblem& problem, const TurnOrders& orders, const Schedule& like) {
  Schedule made = like;
  for (const ReplicaId replica : like.replica_ids()) {
    const int own = problem.pipeline_of(replica);
    const int pipeline = own >= 0 ? own : number(replica) % like.cell;
    for (int device = 0; device < like.devices; ++device) {
      auto& row = made.rows[at(number(replica) * like.devices + device)];
      row.clear();
      for (const CellBlockId id : orders.rows[at(pipeline * like.devices + device)])
        row.push_back(problem.blocks[at(id)].block);
    }
  }
  made.link_orders.clear();
  for (int cell = 0; cell * like.cell < like.replicas; ++cell) {
    const CellReplicas members = cell_replicas(like, cell);
    const int model = problem.pipeline_of(members.first) >= 0 ? cell : 0;
    for (std::size_t q = 0; q < problem.queues.size(); ++q) {
      const TurnProblem::Queue& queue = problem.queues[q];
      if (!queue.turns || queue.cell != model) continue;
      LinkOrder& turns = made.link_orders.emplace_back(turns_order(cell, queue.from, queue.to));
      for (const CellMessageId id : orders.turns[q]) {
        const TurnProblem::OfBlock& producer =
            problem.blocks[at(problem.messages[at(id)].producer)];
        const ReplicaId replica = problem.replicas[at(producer.row / problem.devices)];
        turns.messages.push_back({members[number(replica) % like.cell], producer.block});
      }
    }
  }
  return made;
}

}  // namespace longhaul::planner
