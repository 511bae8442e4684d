#pragma once

#include <optional>
#include <vector>

#include "plan/plan.hpp"

namespace longhaul::sim {

/// Who holds the resources of a plan, and until when. Requests must come in the order in which
/// they are to be served.
class ResourcePool {
public:
  explicit ResourcePool(const Plan& plan);

  struct Free {
    Duration at{};
    OpId holder = kNone<OpId>;  ///< who held it until then
  };
  /// When all that `id` needs is free, and who lets go of it last.
  [[nodiscard]] Free free_for(OpId id) const;
  void hold(OpId id, Duration until);

  /// Is it the turn of `id` on every resource with a stated order?
  [[nodiscard]] bool is_next(OpId id) const;
  /// The ops whose turn comes after `id` on the ordered resources that it held; each once.
  void append_successors(OpId id, std::vector<OpId>& to) const;

private:
  [[nodiscard]] const Free& earliest(ResourceId resource) const;
  const Plan& plan_;
  std::vector<Free> slots_;                ///< `capacity` of each resource
  std::vector<std::uint32_t> first_slot_;  ///< by resource; one more at the end
  std::vector<std::uint32_t> turn_;        ///< by resource: position in its stated order
};

}  // namespace longhaul::sim
