#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::engine {

/// What follows from a plan and its extras alone, for a rank that plays it in order of time. The
/// words are EventDriver's (sim/events/), which plays the same plans.
struct EventFacts {
  EventFacts(const Plan& plan, Rank self);

  /// How the ops of a lane are brought forward: the head alone, in turn; several at a time; those
  /// that a source draws.
  enum class Way : std::uint8_t { in_turn, pool, sourced };
  /// What holding a set of resources takes: nothing but the lane's order, a place in order of
  /// readiness, a choice.
  enum class Access : std::uint8_t { own, request, choice };

  [[nodiscard]] bool is_optional(OpId id) const {
    return !optional.empty() && optional[index(id)] != 0;
  }
  /// Far dependencies of an op of this rank.
  [[nodiscard]] std::span<const plan::FarDependency> far_of(OpId id) const;
  [[nodiscard]] Access access_of(const Op& op) const { return access[index(op.resources)]; }
  [[nodiscard]] bool is_sourced(LaneId lane) const { return ways[index(lane)] == Way::sourced; }
  /// Does a transfer have to wait for its receiver's word?
  [[nodiscard]] bool needs_go_ahead(const Op& send, const Plan& plan) const {
    return with_word[index(plan.op(OpId{send.match}).lane)];
  }

  std::vector<std::uint8_t> optional;  ///< by op; empty: none is
  std::unordered_map<OpId, plan::OpWindow> windows;
  std::unordered_map<OpId, std::int32_t> priorities;
  std::vector<Way> ways;                ///< by lane
  std::vector<Access> access;           ///< by resource set
  std::vector<bool> with_word;          ///< by lane: receives that their senders wait for
  std::vector<std::uint8_t> listeners;  ///< by rank: has a source, so hears of all ops
  std::vector<std::uint8_t> watched;    ///< by op: a version may be its iteration; empty: of none
  bool waits_for_ranks = false;         ///< this one, for ops of others
  int reach = 0;                        ///< iterations that strong dependencies go back
  int reach_of_versions = 0;            ///< that weak ones go back

private:
  void find_access(const Plan& plan);
  void find_ways(const Plan& plan);
  void find_words(const Plan& plan);
  std::unordered_map<OpId, std::vector<plan::FarDependency>> far_;
};

}  // namespace longhaul::engine
