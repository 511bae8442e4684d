#pragma once

#include "fuzz/input.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::fuzz {

/// Changes one thing that the rows of a timeline say: a value, a name, which rows there are.
void lie_in_rows(Timeline& timeline, Input& input);

}  // namespace longhaul::fuzz
