#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "trace/report/report.hpp"

namespace longhaul::report {

/// A step of a critical path with the row that it stands for.
struct PathRow {
  trace::PathStep step;
  TimelineRow row;
};

/// Critical path of the rows of one iteration, in order of time.
[[nodiscard]] std::vector<PathRow> path_rows(std::span<const TimelineRow> rows);

/// "2 crossings, 12.3 ms of 14.5 ms computing" and the blocks in order, wrapped: device:block, with
/// " > " between blocks of one device, " -> " for a message, " =WAN=> " for one between
/// datacenters.
[[nodiscard]] std::string path_text(const std::vector<PathRow>& path);

/// {"wan_crossings", "steps": [{"op", "rank", "kind", ..., "start_ns", "end_ns",
/// "crosses_datacenters"}]}.
[[nodiscard]] nlohmann::ordered_json path_json(const std::vector<PathRow>& path);

}  // namespace longhaul::report
