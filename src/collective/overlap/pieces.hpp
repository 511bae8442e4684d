#pragma once

#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// Cuts a communication that operations wait for, and the first of these operations, into as many
/// pieces: each piece of the operation begins when its piece has come and the piece before has
/// ended. The pieces of the communication are issued one after the other in its place. Each piece
/// of the operation but the first takes `overhead` more. Other operations wait for all pieces.
/// Pieces have a byte at least: fewer are made of a small one.
void cut_with_operation(StageWork& work, CommunicationId communication, int pieces,
                        Duration overhead);

/// The same with the last operation that makes what it moves: a piece of the communication begins
/// when its piece of the operation has ended.
void cut_with_producer(StageWork& work, CommunicationId communication, int pieces,
                       Duration overhead);

/// Puts an operation before another in the order.
void move_before(StageWork& work, OperationId operation, OperationId before);

}  // namespace longhaul::collective
