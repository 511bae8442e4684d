#pragma once

#include <unordered_map>

#include "cuda/marks.hpp"
#include "plan/plan.hpp"

namespace longhaul {

/// Blocks and messages of this rank as ranges of a profiler (accelerator.hpp), by the host's looks:
/// a block that a device was given ahead begins there.
class OpMarks {
public:
  explicit OpMarks(const Plan& plan) : plan_{plan} {}
  void started(OpId id);
  void ended(OpId id);

private:
  const Plan& plan_;
  std::unordered_map<OpId, Mark> open_;
};

}  // namespace longhaul
