#include "planner/advice/failures.hpp"

#include <algorithm>
#include <cmath>

namespace longhaul::planner {

double share_lost(const Failures& failures, std::int64_t gpus) {
  if (failures.mtbf == Duration::zero()) return 0;
  const double between = static_cast<double>(failures.mtbf.count()) /
                         static_cast<double>(std::max<std::int64_t>(1, gpus));
  return std::min(1.0, std::sqrt(2 * static_cast<double>(failures.checkpoint.count()) / between));
}

}  // namespace longhaul::planner
