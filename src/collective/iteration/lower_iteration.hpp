#pragma once

#include <vector>

#include "base/result.hpp"
#include "collective/iteration/iteration_plan.hpp"
#include "plan/lowering/collectives.hpp"
#include "plan/plan.hpp"

namespace longhaul::collective {

/// Which communication of which stage a collective of a plan is (Plan::stepped).
struct CommunicationRef {
  DeviceId stage{};
  CommunicationId communication{};
  Traffic traffic = Traffic::dp;
};

/// A plan of operators and messages, and what its ops are.
struct LoweredIteration {
  Plan plan;
  /// By Plan::stepped, or Plan::collectives; of an iteration in which ranks stand for others by
  /// stepped_of(), a rank's part each.
  std::vector<CommunicationRef> communication_of;
  /// By rank and place in StageWork::order: the op of that operation.
  [[nodiscard]] OpId op_of(Rank rank, std::uint32_t position) const {
    const std::size_t first = index(first_operation[index(standing_for(rank))]);
    return OpId{static_cast<std::uint32_t>(first + position)};
  }
  std::vector<OpId> first_operation;  ///< by rank
  /// By rank, the one whose ops stand for its own; empty: each has its own.
  std::vector<Rank> representative;
  [[nodiscard]] Rank standing_for(Rank rank) const {
    return representative.empty() ? rank : representative[index(rank)];
  }
};

/// Messages that a plan may have: beyond, a simulation takes minutes.
inline constexpr std::size_t kMostMessagesOfIteration = 10'000'000;

/// The iteration with its collectives as messages on lanes of their own (plan::StepLowering), those
/// of one queue one after the other on each rank. A rank takes part from when it begins on, also in
/// what comes in. Refused where a collective cannot be made so, has too many messages, or must
/// cross where no link is.
[[nodiscard]] Result<LoweredIteration> lower_iteration(const IterationPlan& plan);

/// Ranks that do the same throughout: laid out once, or each.
enum class SameRanks : std::uint8_t { once, each };

/// The same with an op of each member for each collective, which holds what its messages hold for
/// as long as they take alone: on a lane for each queue. Not refused for their number.
[[nodiscard]] Result<LoweredIteration> lower_whole_collectives(const IterationPlan& plan,
                                                               const plan::TimeAlone& alone,
                                                               SameRanks same = SameRanks::once);

/// What lower_iteration() says of an iteration with more messages.
[[nodiscard]] Refusal too_many_messages();

/// The groups of a stage's ranks that a communication goes among, each ascending.
[[nodiscard]] std::vector<std::vector<Rank>> groups_of(const Scenario& scenario, DeviceId stage,
                                                       Members members);
/// What each of these groups moves.
[[nodiscard]] Bytes size_in_group(const Communication& communication, const Scenario& scenario,
                                  std::size_t group);

}  // namespace longhaul::collective
