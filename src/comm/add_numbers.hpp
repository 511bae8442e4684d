#pragma once

#include <cstddef>

namespace longhaul::comm {

/// to[i] = a[i] + b[i]; `to` may be `a`, and else overlaps neither. Sums of collectives that are
/// made of messages: here, where code is compiled for speed.
void add_numbers(float* to, const float* a, const float* b, std::size_t count);

}  // namespace longhaul::comm
