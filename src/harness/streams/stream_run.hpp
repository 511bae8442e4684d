#pragma once

#include <vector>

#include "base/error.hpp"
#include "harness/streams/stream_directory.hpp"
#include "harness/streams/stream_measurement.hpp"

namespace longhaul::harness {

/// Streams to be run one after the other.
struct StreamRun {
  std::vector<StreamCase> cases;
  StreamSettings settings;
  double most_percent = 3;  ///< that a period may be away from its prediction
  Duration deadline{};
  StreamRequest request;  ///< `out` empty: nothing is kept; what was asked is added here
};

/// Collective: starts the ranks, measures and prints a table. "No" where a message was wrong or a
/// period is too far away.
[[nodiscard]] ExitCode run_streams(StreamRun run);

}  // namespace longhaul::harness
