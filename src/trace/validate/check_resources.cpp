#include "trace/validate/check_resources.hpp"

#include <optional>
#include <tuple>

#include "base/index.hpp"

namespace longhaul {

bool ResourceHoldLess::operator()(const ResourceHold& a, const ResourceHold& b) const {
  return std::tie(a.resource, a.exclusion, a.start_ns, a.end_ns, a.op) <
         std::tie(b.resource, b.exclusion, b.start_ns, b.end_ns, b.op);
}

void ResourceCheck::add(const TimelineRow& row) {
  const bool sends = row.kind == RowKind::send;
  if (row.resource < 0 || (!sends && !is_collective(row.kind))) return;
  holds_.push({row.resource, sends ? -1 : row.rank, row.start_ns, row.end_ns, row.op, row.rank});
}

Diagnostics ResourceCheck::finish() {
  Diagnostics findings;
  std::optional<ResourceHold> before;
  while (const ResourceHold* hold = holds_.take()) {
    if (before && before->resource == hold->resource && before->exclusion == hold->exclusion &&
        hold->start_ns < before->end_ns - context_.slack_ns)
      context_.add(findings, "resource held twice",
                   {hold->op, key_.schedule, key_.iteration, hold->rank},
                   "takes resource {} at {} ns (op {} holds it until {}).",
                   context_.names->resources[at(hold->resource)], hold->start_ns, before->op,
                   before->end_ns);
    before = *hold;
  }
  return findings;
}

}  // namespace longhaul
