#pragma once

#include <optional>
#include <vector>

#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// Cuts a communication that operations wait for, and the first of these operations, into as many
/// pieces: each piece of the operation begins when its piece has come and the piece before has
/// ended. The pieces of the communication are issued one after the other in its place. Each piece
/// of the operation but the first takes `overhead` more. Other operations wait for all pieces.
/// `user`: another of them instead; those before it in the order wait for the first piece alone.
/// Pieces have a byte at least: fewer are made of a small one.
/// The pieces of the communication, in order.
std::vector<CommunicationId> cut_with_operation(StageWork& work, CommunicationId communication,
                                                int pieces, Duration overhead,
                                                std::optional<OperationId> user = {});

/// The same with the last operation that makes what it moves: a piece of the communication begins
/// when its piece of the operation has ended. `producer`: another of them instead; of those after
/// it in the order the last piece alone takes what they make.
std::vector<CommunicationId> cut_with_producer(StageWork& work, CommunicationId communication,
                                               int pieces, Duration overhead,
                                               std::optional<OperationId> producer = {});

/// How long equal pieces of an operation take that are cut with a collective of that traffic: what
/// the scenario's profile says of one of that size, as a part of the whole's; where it has none,
/// equal parts, each but the first longer by `[overlap] split_overhead`. Of tensor ranks'
/// collectives a piece has some tokens, of others some of the weights.
[[nodiscard]] std::vector<Duration> piece_durations(const IterationPlan& plan,
                                                    const Operation& operation, Traffic traffic,
                                                    int pieces);
/// Both with pieces of the operation that take what piece_durations() says.
std::vector<CommunicationId> cut_with_operation(const IterationPlan& plan, StageWork& work,
                                                CommunicationId communication, int pieces,
                                                std::optional<OperationId> user = {});
std::vector<CommunicationId> cut_with_producer(const IterationPlan& plan, StageWork& work,
                                               CommunicationId communication, int pieces,
                                               std::optional<OperationId> producer = {});

/// Cuts an operation into pieces that take so long, one after the other in its place in the order;
/// what waits for it waits for the last of them. All pieces, in order.
std::vector<OperationId> cut_operation(StageWork& work, OperationId operation,
                                       const std::vector<Duration>& parts);

/// The first in the order of those that wait for it, the last of those that make what it moves.
/// There must be one.
[[nodiscard]] OperationId first_user(const StageWork& work, CommunicationId communication);
[[nodiscard]] OperationId last_producer(const StageWork& work, CommunicationId communication);

/// Puts an operation before another in the order.
void move_before(StageWork& work, OperationId operation, OperationId before);

}  // namespace longhaul::collective
