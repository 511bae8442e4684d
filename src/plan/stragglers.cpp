#include "plan/stragglers.hpp"

#include "plan/rows.hpp"

namespace longhaul {

Plan with_stragglers(Plan plan, const Run& run) {
  if (run.stragglers.empty()) return plan;
  Run steady = run;
  steady.noise = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    Op& op = plan.ops[i];
    if (op.kind != OpKind::compute) continue;
    const DeviceId device = plan.ranks[index(plan.rank_of(id))].device;
    op.duration = scaled(op.duration, block_time_factor(steady, device, id, 0));
  }
  return plan;
}

}  // namespace longhaul
