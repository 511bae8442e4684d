#pragma once

#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/table.hpp"
#include "planner/overlap/evaluate_overlap.hpp"

namespace longhaul::report {

/// A row of `simulate --overlap`; docs/overlap.md says what each key means.
[[nodiscard]] nlohmann::ordered_json to_json(const planner::OverlapResult& result);

/// Of a searched one: "gpipe best: units of an operator; 2 ahead. 152 iterations simulated in 1.2
/// s. Of 9 overlaps of the same sharding the fastest, fsdp2, takes 877.9 ms."
[[nodiscard]] std::string certificate_text(const planner::OverlapResult& result);

[[nodiscard]] std::string overlap_rows_text(std::span<const planner::OverlapResult> results,
                                            TableWidth width);

}  // namespace longhaul::report
