#include "plan/occupancy.hpp"

namespace longhaul::plan {

std::vector<ResourceUse> occupancy(const Plan& plan, const OpTimes& times) {
  std::vector<ResourceUse> uses;
  for (const Resource& resource : plan.resources)
    uses.push_back({resource.name, resource.kind, {}, 0});
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (plan.op(id).kind == OpKind::recv) continue;  // its send holds for both
    for (const ResourceId resource : plan.resources_of(id)) {
      uses[index(resource)].busy += times[i].end - times[i].start;
      ++uses[index(resource)].holds;
    }
  }
  return uses;
}

}  // namespace longhaul::plan
