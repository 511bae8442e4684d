#include "report/critical_path.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/unit_text.hpp"
#include "report/words.hpp"

namespace longhaul::report {
namespace {

constexpr std::size_t kLineWidth = 100;

const TimelineRow& row_of(std::span<const TimelineRow> rows, std::int64_t op) {
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), op,
                       [](const TimelineRow& row, std::int64_t wanted) { return row.op < wanted; });
  LONGHAUL_ASSERT(found != rows.end() && found->op == op, "op {} is on the path, not in the rows",
                  op);
  return *found;
}

std::int64_t crossings_of(const std::vector<PathRow>& path) {
  return std::count_if(path.begin(), path.end(),
                       [](const PathRow& each) { return each.step.crosses_datacenters; });
}

/// The step to a block from the block before it on the path.
struct Hop {
  bool message = false;
  bool crosses = false;
  [[nodiscard]] const char* text() const {
    if (crosses) return "=WAN=> ";
    return message ? "-> " : "> ";
  }
};

std::string block_text(const TimelineRow& row) {
  const std::string part =
      row.parts == 1 ? std::string{} : fmt::format(".{}/{}", row.part + 1, row.parts);
  return fmt::format("{}:{}{}{}{}", row.rank, row.chunk, to_string(row.kind), row.microbatch, part);
}

std::string collective_text(const TimelineRow& row) {
  return fmt::format("{}:{}({})", row.rank, to_string(row.kind), row.chunk);
}

}  // namespace

std::vector<PathRow> path_rows(std::span<const TimelineRow> rows) {
  std::vector<PathRow> path;
  for (const trace::PathStep& step : trace::critical_path(rows))
    path.push_back({step, row_of(rows, step.op)});
  return path;
}

std::string path_text(const std::vector<PathRow>& path) {
  std::int64_t computing = 0;
  for (const PathRow& each : path) {
    if (is_compute(each.row.kind)) computing += each.step.end_ns - each.step.start_ns;
  }
  const std::int64_t whole =
      path.empty() ? 0 : path.back().step.end_ns - path.front().step.start_ns;
  std::string text = fmt::format("  {}, {} of {} computing (rank:block)\n",
                                 counted(crossings_of(path), "WAN crossing"),
                                 to_text(Duration{computing}), to_text(Duration{whole}));
  std::string line = "  ";
  Hop hop;
  bool first = true;
  for (const PathRow& each : path) {
    if (!is_compute(each.row.kind) && !is_collective(each.row.kind)) {
      hop.message = true;
      hop.crosses = hop.crosses || each.step.crosses_datacenters;
      continue;
    }
    const std::string word =
        (first ? "" : hop.text()) +
        (is_compute(each.row.kind) ? block_text(each.row) : collective_text(each.row));
    if (line.size() + word.size() + 1 > kLineWidth) {
      text += line + '\n';
      line = "    ";
    }
    line += (line.back() == ' ' ? "" : " ") + word;
    first = false;
    hop = {};
  }
  return text + line + '\n';
}

nlohmann::ordered_json path_json(const std::vector<PathRow>& path) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const PathRow& each : path) {
    steps.push_back({{"op", each.step.op},
                     {"rank", each.row.rank},
                     {"kind", to_string(each.row.kind)},
                     {"chunk", each.row.chunk},
                     {"microbatch", each.row.microbatch},
                     {"start_ns", each.step.start_ns},
                     {"end_ns", each.step.end_ns},
                     {"crosses_datacenters", each.step.crosses_datacenters}});
  }
  return {{"wan_crossings", crossings_of(path)}, {"steps", std::move(steps)}};
}

}  // namespace longhaul::report
