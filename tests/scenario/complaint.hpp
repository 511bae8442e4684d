#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::scenario {

/// The error for a text named s.toml; "accepted" where there is none.
inline std::string complaint(const std::string& text, const std::vector<std::string>& set = {}) {
  try {
    (void)parse_scenario(text, "s.toml", set);
  } catch (const Error& error) {
    return error.code() == ExitCode::bad_input ? error.what() : "wrong exit code";
  }
  return "accepted";
}

/// Two stages in two datacenters; complete, one statement a line:
///  1 [costs]       4 [parallel]         7 [[datacenter]]  10 [[datacenter]]  13 [[link]]
///  2 forward       5 stages = 2         8 name = "west"   11 name = "east"   14 between
///  3 message       6 microbatches = 4   9 stages = [0]    12 stages = [1]    15 latency
inline const std::vector<std::string> kLines{"[costs]",
                                             "forward = \"40ms\"",
                                             "message = \"1MiB\"",
                                             "[parallel]",
                                             "stages = 2",
                                             "microbatches = 4",
                                             "[[datacenter]]",
                                             "name = \"west\"",
                                             "stages = [0]",
                                             "[[datacenter]]",
                                             "name = \"east\"",
                                             "stages = [1]",
                                             "[[link]]",
                                             "between = [\"west\", \"east\"]",
                                             "latency = \"10ms\""};

inline std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// kLines with line `number` (from 1) replaced; 0 adds `by` at the end, as line 16.
inline std::string with_line(std::size_t number, const std::string& by) {
  std::vector<std::string> lines = kLines;
  if (number == 0)
    lines.push_back(by);
  else
    lines[number - 1] = by;
  return joined(lines);
}

/// The datacenters of kLines.
inline constexpr DatacenterId kWest{0};
inline constexpr DatacenterId kEast{1};

/// From west to east in kLines, with these lines below [[link]].
inline Link link_with(const std::string& lines, const std::vector<std::string>& set = {}) {
  return *parse_scenario(with_line(0, lines), "s.toml", set).link(kWest, kEast);
}

}  // namespace longhaul::scenario
