#pragma once

#include "base/listed_enum.hpp"

// The kinds of blocks, ops, collectives, legs, resources and numbers that all modules name, each
// declared once. A number that stands in a list is the one that files hold: it never changes.
namespace longhaul {

/// X(enumerator, name, number in a trace).
/// F forward; B full backward; D input gradient (dgrad); W weight gradient; R recompute.
#define LONGHAUL_BLOCK_KINDS(X) X(F, "F", 0) X(B, "B", 1) X(D, "D", 2) X(W, "W", 3) X(R, "R", 4)
LONGHAUL_LISTED_ENUM(BlockKind, LONGHAUL_BLOCK_KINDS);

/// Is this a block that passes a gradient on: D or B?
[[nodiscard]] constexpr bool is_backward(BlockKind kind) {
  return kind == BlockKind::B || kind == BlockKind::D;
}

/// The kind of an op of a plan, and of the lane that such ops lie on.
#define LONGHAUL_OP_KINDS(X) \
  X(compute, "compute") X(send, "send") X(recv, "recv") X(collective, "collective")
LONGHAUL_LISTED_ENUM(OpKind, LONGHAUL_OP_KINDS);

/// The part of a collective's numbers that a member brings or gets: 1/n of them, all of them, or
/// all where it is the first member and none where it is another.
enum class Portion : std::uint8_t { share, whole, whole_of_first };
/// Treatment of the numbers that members bring: one member's after the other's; part i of each
/// member's for member i; their sum.
enum class Merging : std::uint8_t { side_by_side, transposed, sum };
/// When it runs: before the first F of its stage, for which it brings weights, or after the stage's
/// last W or B, which made its gradients.
enum class CollectiveTurn : std::uint8_t { before_forward, after_gradients };

/// X(enumerator, name in a trace, number in a trace, name for people, a member brings, a member
/// gets, merging, turn, times that all bytes go around the ring, number in Chakra's schema).
#define LONGHAUL_COLLECTIVE_KINDS(X)                                                         \
  X(all_gather, "all_gather", 7, "all-gather", Portion::share, Portion::whole,               \
    Merging::side_by_side, CollectiveTurn::before_forward, 1, 2)                             \
  X(reduce_scatter, "reduce_scatter", 8, "reduce-scatter", Portion::whole, Portion::share,   \
    Merging::sum, CollectiveTurn::after_gradients, 1, 7)                                     \
  X(all_reduce, "all_reduce", 9, "all-reduce", Portion::whole, Portion::whole, Merging::sum, \
    CollectiveTurn::after_gradients, 2, 0)                                                   \
  X(broadcast, "broadcast", 10, "broadcast", Portion::whole_of_first, Portion::whole,        \
    Merging::side_by_side, CollectiveTurn::before_forward, 2, 5)                             \
  X(reduce, "reduce", 11, "reduce", Portion::whole, Portion::whole_of_first, Merging::sum,   \
    CollectiveTurn::after_gradients, 2, 1)                                                   \
  X(gather, "gather", 12, "gather", Portion::share, Portion::whole_of_first,                 \
    Merging::side_by_side, CollectiveTurn::after_gradients, 1, 3)                            \
  X(scatter, "scatter", 13, "scatter", Portion::whole_of_first, Portion::share,              \
    Merging::side_by_side, CollectiveTurn::before_forward, 1, 4)                             \
  X(all_to_all, "all_to_all", 14, "all-to-all", Portion::whole, Portion::whole,              \
    Merging::transposed, CollectiveTurn::before_forward, 1, 6)
LONGHAUL_LISTED_ENUM(CollectiveKind, LONGHAUL_COLLECTIVE_KINDS);

/// The facts of a kind of collective: all that plan, time, run, check or export one ask here.
struct CollectiveFacts {
  const char* name;
  std::uint8_t number_in_trace;
  const char* text;  ///< "all-gather"
  Portion brings, gets;
  Merging merging;
  CollectiveTurn turn;
  /// A ring of n members takes n-1 steps of 1/n of the bytes for each.
  int rounds;
  std::uint8_t number_in_chakra;

  /// Of `numbers` in all, those that the member of that place of `members` brings or gets.
  [[nodiscard]] constexpr std::size_t brought(std::size_t numbers, std::size_t members,
                                              std::size_t place) const {
    return portion(brings, numbers, members, place);
  }
  [[nodiscard]] constexpr std::size_t got(std::size_t numbers, std::size_t members,
                                          std::size_t place) const {
    return portion(gets, numbers, members, place);
  }

private:
  [[nodiscard]] static constexpr std::size_t portion(Portion portion, std::size_t numbers,
                                                     std::size_t members, std::size_t place) {
    if (portion == Portion::share) return numbers / members;
    return portion == Portion::whole || place == 0 ? numbers : 0;
  }
};

#define LONGHAUL_COLLECTIVE_FACTS(enumerator, ...) CollectiveFacts{__VA_ARGS__},
inline constexpr std::array kCollectiveFacts{LONGHAUL_COLLECTIVE_KINDS(LONGHAUL_COLLECTIVE_FACTS)};
#undef LONGHAUL_COLLECTIVE_FACTS
[[nodiscard]] constexpr const CollectiveFacts& facts_of(CollectiveKind kind) {
  return kCollectiveFacts[static_cast<std::size_t>(kind)];
}
/// "all-gather".
[[nodiscard]] constexpr const char* to_text(CollectiveKind kind) { return facts_of(kind).text; }
[[nodiscard]] constexpr bool is_before_forward(CollectiveKind kind) {
  return facts_of(kind).turn == CollectiveTurn::before_forward;
}

/// What a rank does beside its blocks: a task of its host's threads (an op that holds `workers`), a
/// copy (one that holds a `copy_engine`), or one of these whose plan says what it is
/// (plan::OpTask); or a part of the prefill of a prompt, on its device (PlanExtras::served).
/// X(enumerator, name, number in a trace, moves data).
#define LONGHAUL_TASK_KINDS(X)             \
  X(host_task, "host_task", 15, false)     \
  X(copy, "copy", 16, true)                \
  X(copy_out, "copy_out", 17, true)        \
  X(host_gather, "host_gather", 18, false) \
  X(compress, "compress", 19, false)       \
  X(merge, "merge", 20, false)             \
  X(optimize, "optimize", 21, false)       \
  X(copy_in, "copy_in", 22, true)          \
  X(prefill, "prefill", 23, false)
LONGHAUL_LISTED_ENUM(TaskKind, LONGHAUL_TASK_KINDS);

/// The kind of a row of a timeline: of a block, of a side of a message, of a collective, or of a
/// task beside these. Its values are the numbers in a trace.
#define LONGHAUL_MESSAGE_SIDES(X) X(send, "send", 5) X(recv, "recv", 6)
#define LONGHAUL_ROW_KINDS(X) \
  LONGHAUL_BLOCK_KINDS(X)     \
  LONGHAUL_MESSAGE_SIDES(X)   \
  LONGHAUL_COLLECTIVE_KINDS(X) LONGHAUL_TASK_KINDS(X)
LONGHAUL_NUMBERED_ENUM(RowKind, LONGHAUL_ROW_KINDS);

#define LONGHAUL_ROW_OF_BLOCK(enumerator, ...) \
  case BlockKind::enumerator: return RowKind::enumerator;
[[nodiscard]] constexpr RowKind row_kind_of(BlockKind kind) {
  switch (kind) { LONGHAUL_BLOCK_KINDS(LONGHAUL_ROW_OF_BLOCK) }
  return {};
}
#undef LONGHAUL_ROW_OF_BLOCK

#define LONGHAUL_ROW_OF_COLLECTIVE(enumerator, ...) \
  case CollectiveKind::enumerator: return RowKind::enumerator;
[[nodiscard]] constexpr RowKind row_kind_of(CollectiveKind kind) {
  switch (kind) { LONGHAUL_COLLECTIVE_KINDS(LONGHAUL_ROW_OF_COLLECTIVE) }
  return {};
}
#undef LONGHAUL_ROW_OF_COLLECTIVE

#define LONGHAUL_ROW_OF_TASK(enumerator, ...) \
  case TaskKind::enumerator: return RowKind::enumerator;
[[nodiscard]] constexpr RowKind row_kind_of(TaskKind kind) {
  switch (kind) { LONGHAUL_TASK_KINDS(LONGHAUL_ROW_OF_TASK) }
  return {};
}
#undef LONGHAUL_ROW_OF_TASK

/// The kind of a row of a task.
[[nodiscard]] constexpr TaskKind task_kind_of(RowKind kind) {
  for (const TaskKind each : every<TaskKind>())
    if (row_kind_of(each) == kind) return each;
  return {};
}
/// Is it a copy between host and device?
[[nodiscard]] constexpr bool is_copy(TaskKind kind) {
#define LONGHAUL_TASK_COPIES(enumerator, name, number, copies) copies,
  constexpr std::array<bool, kCountOf<TaskKind>> kCopies{LONGHAUL_TASK_KINDS(LONGHAUL_TASK_COPIES)};
#undef LONGHAUL_TASK_COPIES
  return kCopies[static_cast<std::size_t>(kind)];
}

[[nodiscard]] constexpr bool is_compute(RowKind kind) {
  for (const BlockKind each : every<BlockKind>())
    if (row_kind_of(each) == kind) return true;
  return false;
}
[[nodiscard]] constexpr bool is_message(RowKind kind) {
  return kind == RowKind::send || kind == RowKind::recv;
}
[[nodiscard]] constexpr bool is_task(RowKind kind) {
  for (const TaskKind each : every<TaskKind>())
    if (row_kind_of(each) == kind) return true;
  return false;
}
[[nodiscard]] constexpr bool is_collective(RowKind kind) {
  return !is_compute(kind) && !is_message(kind) && !is_task(kind);
}

/// Legs of a message's way. A message that shares the WAN with its DP-cell (Schedule::cell) is cut
/// into a piece for each pipeline of the cell: the sender scatters the pieces inside its datacenter
/// to the cell's ranks of its own device, all of these send theirs over the WAN at once, and the
/// ranks at the far end gather them at the receiver (Atlas section 4.3). The piece that its sender
/// takes over the WAN itself has only the wan leg. X(enumerator, name, number in a trace).
#define LONGHAUL_MESSAGE_LEGS(X) \
  X(whole, "whole", 0) X(scatter, "scatter", 1) X(wan, "wan", 2) X(gather, "gather", 3)
LONGHAUL_NUMBERED_ENUM(MessageLeg, LONGHAUL_MESSAGE_LEGS);

/// How far a message goes: inside a node, between nodes of a datacenter, between datacenters.
#define LONGHAUL_NETWORK_LEVELS(X) X(node, "node") X(datacenter, "datacenter") X(wan, "wan")
LONGHAUL_LISTED_ENUM(NetworkLevel, LONGHAUL_NETWORK_LEVELS);

/// What a rank does: trains, or serves those that do. A controller decides, a decoder generates
/// tokens, a load generator sends requests.
#define LONGHAUL_RANK_ROLES(X) \
  X(training, "training")      \
  X(controller, "controller") X(decode, "decode") X(load_generator, "load-generator")
LONGHAUL_LISTED_ENUM(RankRole, LONGHAUL_RANK_ROLES);

/// What became of an op: it ran; it was withdrawn, since another did its work; it ran after its
/// deadline; it was skipped, for it could not have met its deadline or depends on one that did not
/// run; its source never drew it. An open list: X(enumerator, name, number in a trace).
#define LONGHAUL_OUTCOMES(X)   \
  X(ran, "ran", 0)             \
  X(withdrawn, "withdrawn", 1) \
  X(late, "late", 2)           \
  X(skipped, "skipped", 3) X(undrawn, "undrawn", 4)
LONGHAUL_NUMBERED_ENUM(Outcome, LONGHAUL_OUTCOMES);
[[nodiscard]] constexpr bool has_run(Outcome outcome) {
  return outcome == Outcome::ran || outcome == Outcome::late;
}

/// How a lane or a resource picks the next of its ops: in the order that the plan states (of a
/// resource without one: in order of readiness); of those that are ready when it is free the one
/// with the least (ready, op id); or of these the one with the least (priority, op id). None is
/// ever pre-empted, and what gets ready at that very instant takes part.
#define LONGHAUL_SERVING(X) X(order, "order") X(arrival, "arrival") X(deadline, "deadline")
LONGHAUL_LISTED_ENUM(Serve, LONGHAUL_SERVING);

/// Resources that ops hold one at a time. `link` is that of an ordered pair
/// of ranks, `shared_link` one that all messages of an ordered pair of datacenters share,
/// `aggregate` all that such a pair has (Link::aggregate). `egress` and `ingress` are a node's
/// interface to the WAN, `internal_out` and `internal_in` its interface inside its datacenter,
/// `port_out` and `port_in` a rank's inside its node. `workers` are the threads of a rank's host
/// that take its tasks, `copy_engine` moves what a device takes from its host or gives it.
#define LONGHAUL_RESOURCE_KINDS(X) \
  X(device, "device")              \
  X(collective, "collective")      \
  X(link, "link")                  \
  X(shared_link, "shared-link")    \
  X(aggregate, "aggregate")        \
  X(egress, "egress")              \
  X(ingress, "ingress")            \
  X(internal_out, "internal-out")  \
  X(internal_in, "internal-in")    \
  X(port_out, "port-out")          \
  X(port_in, "port-in") X(workers, "workers") X(copy_engine, "copy-engine")
LONGHAUL_LISTED_ENUM(ResourceKind, LONGHAUL_RESOURCE_KINDS);

/// The types of the numbers that layers work with and that collectives exchange: X(enumerator,
/// name, bytes).
#define LONGHAUL_NUMBER_TYPES(X) \
  X(f32, "f32", 4) X(bf16, "bf16", 2) X(i32, "i32", 4) X(i64, "i64", 8)
LONGHAUL_LISTED_ENUM(NumberType, LONGHAUL_NUMBER_TYPES);

[[nodiscard]] constexpr std::size_t bytes_of(NumberType type) {
#define LONGHAUL_NUMBER_BYTES(enumerator, name, bytes) bytes,
  constexpr std::array<std::size_t, kCountOf<NumberType>> kBytes{
      LONGHAUL_NUMBER_TYPES(LONGHAUL_NUMBER_BYTES)};
#undef LONGHAUL_NUMBER_BYTES
  return kBytes[static_cast<std::size_t>(type)];
}

}  // namespace longhaul
