#pragma once

#include <optional>

#include "scenario/served_model.hpp"

namespace longhaul::prefill {

/// How well a profile predicts a size that it does not have: each size but the first and the last
/// is left out in turn and predicted from the others.
struct ProfileError {
  int sizes = 0;     ///< that were left out
  double mean = 0;   ///< of |predicted / given - 1|
  double worst = 0;  ///< of the same
};
/// nullopt: there is no profile, or one of less than three sizes.
[[nodiscard]] std::optional<ProfileError> leave_one_out(const ServedModel& model);

}  // namespace longhaul::prefill
