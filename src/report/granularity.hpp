#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plan/rewrite/expand.hpp"

namespace longhaul {
class Arguments;
}

namespace longhaul::report {

/// Declares --granularity, read into `text`, which must outlive `command`; empty: block.
void add_granularity_option(Arguments& command, std::string& text);
/// Of --granularity; empty: blocks. Throws Error with the nearest known word.
[[nodiscard]] Granularity granularity_of(std::string_view text);

/// What all operators of one name take in an iteration, on all ranks together.
struct OperatorUse {
  std::string name;
  Duration busy{};
  std::size_t count = 0;
};
/// What lies below the blocks of one schedule.
struct OperatorReport {
  plan::OperatorCount count;
  std::vector<OperatorUse> uses;  ///< the longest first
};
/// Of a plan of blocks whose operators are known.
[[nodiscard]] OperatorReport report_operators(const Plan& plan);

/// {"blocks", "operators", "lists", "uses": [{"operator", "busy_ns", "count"}]}.
[[nodiscard]] nlohmann::ordered_json to_json(const OperatorReport& report);

}  // namespace longhaul::report
