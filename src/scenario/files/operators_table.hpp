#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

/// The operators of a model with the times that bench_profile measured, out of its operators.csv
/// (docs/profile.md, operators.csv). A product is known by its size, the others by their names;
/// norms of one layer take equal parts. The calls of a block that are none of these (copies) are
/// one more operator at the layer's end, "rest", so that a layer's times add up to the table's.
/// Throws Error "source:line: ..." for a text that is no such table, and where a product of the
/// model is not in it.
[[nodiscard]] std::vector<Operator> read_operators_table(std::string_view csv,
                                                         const std::string& source,
                                                         const Model& model);

}  // namespace longhaul::scenario
