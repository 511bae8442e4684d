#pragma once

#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::sim {

/// The holders of a plan's resources, each until a time. Requests must come in the order in which
/// they are to be served.
class ResourcePool {
public:
  /// `first`: the iteration with which stated orders begin.
  explicit ResourcePool(const Plan& plan, int first = 0);

  struct Free {
    Duration at{};
    OpId holder = kNone<OpId>;  ///< who held it until then, or had its turn then
  };
  /// When all that `id` needs is free and it is its turn, and who lets go or had its turn last.
  [[nodiscard]] Free free_for(OpId id) const;
  /// `served`: the instant in which it is served; no one after it in a stated order begins before.
  void hold(OpId id, Duration until, Duration served);

  /// Is it the turn of `id` on every resource with a stated order? Orders begin anew with each
  /// iteration.
  [[nodiscard]] bool is_next(OpId id, int iteration = 0) const;
  /// The ops whose turn comes after `id` on the ordered resources that it held; each once.
  void append_successors(OpId id, std::vector<OpId>& to) const;

private:
  [[nodiscard]] const Free& earliest(ResourceId resource) const;
  const Plan& plan_;
  std::vector<Free> slots_;                ///< `capacity` of each resource
  std::vector<std::uint32_t> first_slot_;  ///< by resource; one more at the end
  std::vector<std::uint32_t> turn_;        ///< by resource: position in its stated order
  std::vector<int> round_;                 ///< by resource: the iteration of that order
  bool has_orders_ = false;                ///< some resource has a stated order
  std::vector<Free> turn_since_;           ///< by resource: who had the turn before, and when
};

}  // namespace longhaul::sim
