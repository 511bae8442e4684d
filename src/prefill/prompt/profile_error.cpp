#include "prefill/prompt/profile_error.hpp"

#include <algorithm>
#include <cmath>

namespace longhaul::prefill {

std::optional<ProfileError> leave_one_out(const ServedModel& model) {
  const auto& points = model.profile;
  if (points.size() < 3) return std::nullopt;
  ProfileError error;
  ServedModel without = model;
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    without.profile = points;
    without.profile.erase(without.profile.begin() + static_cast<std::ptrdiff_t>(i));
    const auto predicted = static_cast<double>(without.time(points[i].tokens)->count());
    const double off = std::fabs(predicted / static_cast<double>(points[i].time.count()) - 1);
    error.mean += off;
    error.worst = std::max(error.worst, off);
    ++error.sizes;
  }
  error.mean /= error.sizes;
  return error;
}

}  // namespace longhaul::prefill
