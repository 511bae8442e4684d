#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/csv/csv_line.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule::csv {

/// The values in the comment lines of a longhaul file; absent ones are inferred from the rows.
struct Header {
  /// Takes in one of them; `line` begins after its '#'. Throws Error with file, line and column.
  void read(Line& line);

  bool present = false;
  std::optional<std::string> name;
  std::optional<int> devices;
  std::optional<int> chunks;
  std::optional<int> microbatches;
  std::optional<int> replicas;
  std::optional<std::vector<int>> replica_microbatches;
  std::optional<int> copies;
  std::optional<int> cell;
  std::optional<IndexedVector<ChunkId, DeviceId>> device_of_chunk;
  std::optional<RecomputeTiming> recompute;
  std::vector<LinkOrder> link_orders;
  std::set<std::string> ordered;  ///< resources of link_orders
};

}  // namespace longhaul::schedule::csv
