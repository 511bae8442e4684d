#pragma once

#include <iosfwd>
#include <optional>

#include "trace/trace_file.hpp"

namespace longhaul {

/// What to export; absent: everything.
struct Selection {
  std::optional<int> schedule;
  std::optional<int> iteration;
};

/// Chrome / Perfetto JSON: process = datacenter (predicted apart from measured), thread = rank and
/// lane, arguments = microbatch, chunk, size; flow arrows join send and arrival of a message.
void export_chrome(const Trace& trace, const Selection& selection, std::ostream& out);
/// One line per row, header first, names written out, source column `measured` or `predicted`.
void export_csv(const Trace& trace, const Selection& selection, std::ostream& out);

}  // namespace longhaul
