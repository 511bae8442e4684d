#pragma once

#include "trace/validate/check_context.hpp"
#include "trace/validate/external_sort.hpp"

namespace longhaul {

/// An op that holds a resource against others.
struct ResourceHold {
  std::int32_t resource;
  std::int32_t exclusion;  ///< the rank of a collective, whose members hold resources together
  std::int64_t start_ns, end_ns, op;
  std::int32_t rank;
};
struct ResourceHoldLess {
  bool operator()(const ResourceHold& a, const ResourceHold& b) const;
};

/// No two transfers hold one resource at a time, nor do two collectives of one rank. Of one
/// iteration.
class ResourceCheck {
public:
  ResourceCheck(const CheckContext& context, IterationKey key)
      : context_{context}, key_{key}, holds_{context.sort_bytes} {}
  void add(const TimelineRow& row);
  [[nodiscard]] Diagnostics finish();

private:
  const CheckContext& context_;
  IterationKey key_;
  ExternalSort<ResourceHold, ResourceHoldLess> holds_;
};

}  // namespace longhaul
