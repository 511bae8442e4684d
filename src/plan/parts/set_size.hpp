#pragma once

#include <cstdint>

#include "base/units.hpp"
#include "scenario/training.hpp"

namespace longhaul::plan {

/// Numbers that one set of a part keeps, when `sets` of them make up what is kept together
/// (KeptShare::split).
[[nodiscard]] std::int64_t numbers_kept(const GradientCompression& compress, std::int64_t numbers,
                                        int sets);

/// Bytes of such a set on the wire: each number as `values` says and its place as `index` does;
/// "gaps" by the bound that no code is below, the entropy of which blocks are kept. Dense ones are
/// written without places. Nominal: that of a real set depends on its content.
[[nodiscard]] Bytes set_size(const GradientCompression& compress, std::int64_t numbers, int sets);

}  // namespace longhaul::plan
