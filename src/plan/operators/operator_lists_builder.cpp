#include "plan/operators/operator_lists_builder.hpp"

#include <span>
#include <utility>

namespace longhaul::plan {
namespace {

/// Of a list that is not made yet; the empty one is list 0.
constexpr OperatorListId kNotMade = kNone<OperatorListId>;

}  // namespace

OperatorListsBuilder::OperatorListsBuilder(const Schedule& schedule, const Scenario& scenario,
                                           Below below)
    : scenario_{scenario},
      below_{below},
      costs_{schedule::costs_of_replicas(schedule, scenario)},
      ranges_{schedule::operators_of_chunks(schedule, scenario)},
      whole_(costs_.size(),
             IndexedVector<ChunkId, std::array<OperatorListId, 5>>(schedule.chunks)) {
  lists_.first_layer.assign(schedule.chunks, -1);
  for (const ChunkId chunk : schedule.chunk_ids()) {
    for (auto& of_costs : whole_) of_costs[chunk].fill(kNotMade);
    if (ranges_[chunk].count > 0)
      lists_.first_layer[chunk] = (*scenario.operators.all)[ranges_[chunk].first].layer;
  }
}

OperatorListId OperatorListsBuilder::list_of(const Block& block, ReplicaId replica) {
  const std::size_t costs = costs_.size() == 1 ? 0 : index(replica);
  if (block.parts == 1) {
    OperatorListId& whole = whole_[costs][block.chunk][index(block.kind)];
    if (whole == kNotMade) whole = made(block, costs);
    return whole;
  }
  const auto [at, is_new] =
      parts_.try_emplace({costs, block.kind, block.chunk, block.part, block.parts}, kNotMade);
  if (is_new) at->second = made(block, costs);
  return at->second;
}

OperatorListId OperatorListsBuilder::list_of(const std::string& name, Duration time) {
  return shared({{number_of(name), -1, 0, 1, time}});
}

/// The block's time is cut at the ends of its operators, whose own times say in which proportion.
OperatorListId OperatorListsBuilder::made(const Block& block, std::size_t costs) {
  const auto [first, count] = ranges_[block.chunk];
  const std::span<const Operator> of_chunk =
      std::span{*scenario_.operators.all}.subspan(first, count);
  std::vector<schedule::BlockOperator> operators = schedule::block_operators(of_chunk, block.kind);
  if (below_ == Below::tasks) operators = with_tasks(std::move(operators), of_chunk);
  Duration length{};
  for (const schedule::BlockOperator& each : operators) length += each.time;
  const Duration whole = costs_[costs].duration(block);
  const int first_layer = lists_.first_layer[block.chunk];
  std::vector<OperatorStep> steps;
  Duration end{};
  for (const schedule::BlockOperator& each : operators) {
    end += each.time;
    steps.push_back({number_of(each.name), each.layer < 0 ? -1 : each.layer - first_layer,
                     block.part, block.parts, portion(whole, end, length)});
  }
  return shared(std::move(steps));
}

/// Tasks of an operator share its time in proportion to theirs.
std::vector<schedule::BlockOperator> OperatorListsBuilder::with_tasks(
    std::vector<schedule::BlockOperator> operators, std::span<const Operator> of_chunk) const {
  std::vector<schedule::BlockOperator> result;
  for (schedule::BlockOperator& each : operators) {
    const int known = of_chunk[to_size(each.place)].tasks;
    const std::vector<OperatorTask>* tasks = nullptr;
    if (known >= 0 && scenario_.operators.tasks != nullptr)
      tasks = &(*scenario_.operators.tasks)[to_size(known)][index(each.work)];
    if (tasks == nullptr || tasks->empty()) {
      result.push_back(std::move(each));
      continue;
    }
    Duration length{}, end{}, before{};
    for (const OperatorTask& task : *tasks) length += task.time;
    for (const OperatorTask& task : *tasks) {
      end += task.time;
      const Duration now = portion(each.time, end, length);
      result.push_back(
          {each.name + '/' + task.name, each.layer, now - before, each.place, each.work});
      before = now;
    }
  }
  return result;
}

OperatorListId OperatorListsBuilder::shared(std::vector<OperatorStep> steps) {
  if (steps.empty()) return OperatorListId{};
  const OperatorListId next{static_cast<std::uint32_t>(lists_.begin.size() - 1)};
  const auto [at, is_new] = known_.try_emplace(std::move(steps), next);
  if (is_new) {
    lists_.steps.insert(lists_.steps.end(), at->first.begin(), at->first.end());
    lists_.begin.push_back(static_cast<std::uint32_t>(lists_.steps.size()));
  }
  return at->second;
}

std::uint32_t OperatorListsBuilder::number_of(const std::string& name) {
  const auto [at, is_new] =
      numbers_.try_emplace(name, static_cast<std::uint32_t>(lists_.names.size()));
  if (is_new) lists_.names.push_back(name);
  return at->second;
}

}  // namespace longhaul::plan
