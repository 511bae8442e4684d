#include "collective/overlap/pieces.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "scenario/files/profiled_operators.hpp"
#include "schedule/block_operators.hpp"

namespace longhaul::collective {
namespace {

/// Of an operator that is cut more than once, too.
void number_pieces(StageWork& work, std::uint32_t position) {
  std::vector<OperationId> all;
  for (const OperationId id : work.order)
    if (work.operations[id].position == position) all.push_back(id);
  for (std::size_t i = 0; i < all.size(); ++i) {
    work.operations[all[i]].piece = static_cast<std::uint16_t>(i);
    work.operations[all[i]].pieces = static_cast<std::uint16_t>(all.size());
  }
}

std::vector<Duration> even_parts_of(Duration duration, int pieces, Duration overhead) {
  std::vector<Duration> parts;
  for (int piece = 0; piece < pieces; ++piece)
    parts.push_back(share(duration, pieces, piece) + (piece > 0 ? overhead : Duration{}));
  return parts;
}

/// `side`: where the communication has the operation. `parts_of`: what its pieces take.
template <class PartsOf>
std::vector<CommunicationId> cut(StageWork& work, CommunicationId id, OperationId with,
                                 std::vector<OperationId> Communication::*side, int pieces,
                                 const PartsOf& parts_of) {
  const Communication whole = work.communications[id];
  pieces = static_cast<int>(std::min<std::int64_t>(pieces, whole.size.count()));
  std::vector<CommunicationId> made{id};
  if (pieces < 2) return made;
  const std::vector<OperationId> operations =
      cut_operation(work, with, parts_of(work.operations[with], pieces));
  const bool is_user = side == &Communication::needed_by;
  const auto positions = work.positions();
  const std::uint32_t place = positions[operations.front()];
  for (int piece = 0; piece < pieces; ++piece) {
    Communication part = whole;
    // Users before it wait for the first piece alone, makers after it are waited for by the last.
    if (is_user && piece > 0)
      std::erase_if(part.needed_by, [&](OperationId each) { return positions[each] < place; });
    if (!is_user && piece + 1 < pieces)
      std::erase_if(part.needs, [&](OperationId each) {
        return each != with && positions[each] > positions[operations.back()];
      });
    part.size = plan::shard_size(whole.size, pieces, piece);
    part.cut_with = static_cast<std::int32_t>(work.operations[with].position);
    std::ranges::replace(part.*side, with, operations[to_size(piece)]);
    if (piece == 0)
      work.communications[id] = std::move(part);
    else
      made.push_back(work.communications.push_back(std::move(part)));
  }
  const auto issued = std::ranges::find(work.issue, id);
  work.issue.insert(issued + 1, made.begin() + 1, made.end());
  for (Communication& each : work.communications)
    if (std::ranges::find(each.follows, id) != each.follows.end())
      each.follows.insert(each.follows.end(), made.begin() + 1, made.end());
  return made;
}

}  // namespace

std::vector<OperationId> cut_operation(StageWork& work, OperationId whole,
                                       const std::vector<Duration>& parts) {
  std::vector<OperationId> all{whole};
  for (std::size_t piece = 1; piece < parts.size(); ++piece) {
    Operation operation = work.operations[whole];
    operation.duration = parts[piece];
    operation.needs = {all.back()};
    all.push_back(work.add(std::move(operation)));
  }
  work.operations[whole].duration = parts.front();
  const auto place = std::ranges::find(work.order, whole);
  work.order.insert(place + 1, all.begin() + 1, all.end());
  for (const OperationId id : work.operations.ids())
    if (std::ranges::find(all, id) == all.end())
      std::ranges::replace(work.operations[id].needs, whole, all.back());
  for (Communication& each : work.communications)
    for (std::vector<OperationId>* operations : {&each.needs, &each.after})
      std::ranges::replace(*operations, whole, all.back());
  number_pieces(work, work.operations[whole].position);
  return all;
}

OperationId first_user(const StageWork& work, CommunicationId id) {
  const std::vector<OperationId>& waiting = work.communications[id].needed_by;
  LONGHAUL_ASSERT(!waiting.empty(), "no operation waits for communication {}", number(id));
  const auto positions = work.positions();
  return *std::ranges::min_element(waiting, {}, [&](OperationId each) { return positions[each]; });
}

OperationId last_producer(const StageWork& work, CommunicationId id) {
  const std::vector<OperationId>& needed = work.communications[id].needs;
  LONGHAUL_ASSERT(!needed.empty(), "communication {} needs no operation", number(id));
  const auto positions = work.positions();
  return *std::ranges::max_element(needed, {}, [&](OperationId each) { return positions[each]; });
}

namespace {

/// Whole, of a plan that knows what pieces take; nullptr: it does not, or it is cut already.
const Operator* operator_with_times(const IterationPlan& plan, const Operation& operation) {
  if (!plan.piece_times || operation.place < 0 || operation.pieces > 1) return nullptr;
  const auto ranges = schedule::operators_of_chunks(*plan.schedule, *plan.scenario);
  return &(*plan.scenario->operators.all)[ranges[operation.chunk].first + at(operation.place)];
}

}  // namespace

std::vector<Duration> piece_durations(const IterationPlan& plan, const Operation& operation,
                                      Traffic traffic, int pieces) {
  const Operator* const of = operator_with_times(plan, operation);
  if (of == nullptr)
    return even_parts_of(operation.duration, pieces, plan.scenario->pieces.overhead);
  const auto side =
      traffic == Traffic::tp ? scenario::PieceSide::tokens : scenario::PieceSide::weights;
  const auto piece = plan.piece_times->of(*of, operation.work, side, pieces);
  const auto whole = plan.piece_times->of(*of, operation.work, side, 1);
  if (!piece || !whole)
    return even_parts_of(operation.duration, pieces, plan.scenario->pieces.overhead);
  return std::vector<Duration>(to_size(pieces), portion(operation.duration, *piece, *whole));
}

namespace {

/// Equal, and longer by the overhead.
auto equal_pieces(Duration overhead) {
  return [overhead](const Operation& operation, int pieces) {
    return even_parts_of(operation.duration, pieces, overhead);
  };
}

auto measured_pieces(const IterationPlan& plan, Traffic traffic) {
  return [&plan, traffic](const Operation& operation, int pieces) {
    return piece_durations(plan, operation, traffic, pieces);
  };
}

}  // namespace

std::vector<CommunicationId> cut_with_operation(StageWork& work, CommunicationId id, int pieces,
                                                Duration overhead,
                                                std::optional<OperationId> user) {
  return cut(work, id, user ? *user : first_user(work, id), &Communication::needed_by, pieces,
             equal_pieces(overhead));
}

std::vector<CommunicationId> cut_with_producer(StageWork& work, CommunicationId id, int pieces,
                                               Duration overhead,
                                               std::optional<OperationId> producer) {
  return cut(work, id, producer ? *producer : last_producer(work, id), &Communication::needs,
             pieces, equal_pieces(overhead));
}

std::vector<CommunicationId> cut_with_operation(const IterationPlan& plan, StageWork& work,
                                                CommunicationId id, int pieces,
                                                std::optional<OperationId> user) {
  return cut(work, id, user ? *user : first_user(work, id), &Communication::needed_by, pieces,
             measured_pieces(plan, work.communications[id].traffic));
}

std::vector<CommunicationId> cut_with_producer(const IterationPlan& plan, StageWork& work,
                                               CommunicationId id, int pieces,
                                               std::optional<OperationId> producer) {
  return cut(work, id, producer ? *producer : last_producer(work, id), &Communication::needs,
             pieces, measured_pieces(plan, work.communications[id].traffic));
}

void move_before(StageWork& work, OperationId operation, OperationId before) {
  std::erase(work.order, operation);
  work.order.insert(std::ranges::find(work.order, before), operation);
}

}  // namespace longhaul::collective
