#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "trace/timeline.hpp"

namespace longhaul {

/// Takes a finding: its sort, the row that it is about, what is wrong with it.
using ReportPiece = std::function<void(const char* sort, const TimelineRow& row, std::string what)>;

/// Checks the messages that travel in pieces, in the rows of one iteration: a message has each of
/// its pieces once, cut as evenly as can be (the remainder of bytes on the first); a relay sends
/// over the WAN what was scattered to it, and gathers what came over the WAN, of the same size and
/// no earlier than it has it, `slack_ns` aside.
void check_pieces(std::span<const TimelineRow> rows, std::int64_t slack_ns,
                  const ReportPiece& report);

}  // namespace longhaul
