#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/engine.hpp"
#include "harness/streams/segment_writer.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::harness {

/// The request for a directory of streams; of `asked` all that the results depend on.
struct StreamRequest {
  std::filesystem::path out;
  bool resume = false;
  /// On rank 0: all streams go on together, with at most so many iterations; nullopt: each by
  /// itself.
  std::optional<int> together{};
  nlohmann::json asked;
  trace::RunInfo info;
};

/// The directory of --out of a run of streams from the first file to the last. Each iteration is a
/// segment of each rank as soon as the rank's ops of it are over, though the stream runs on: a run
/// that is killed keeps the iterations that all ranks have finished, and --resume goes on with the
/// next one. input.json, run.h5 and segments while it goes on; input.json and trace.h5 when it is
/// complete.
class StreamDirectory {
public:
  /// Collective. `predict` gives the rows of all iterations of all streams, on rank 0. `offset`
  /// moves this rank's stamps to rank 0's clock.
  StreamDirectory(engine::Ranks& ranks, const StreamRequest& request, std::size_t streams,
                  const std::function<Timeline()>& predict, Duration offset);

  /// Iterations that an earlier part of the run has finished; the same on all ranks.
  [[nodiscard]] int finished(int stream) const;
  /// This rank's rows of an iteration.
  void keep(int stream, const Plan& plan, const engine::IterationResult& result);
  /// All that was kept is on the disk when it returns.
  void flush() { writer_->finish(); }
  /// The run goes on (another part of it will): segments stay beside the trace.
  enum class Ends { here, goes_on };
  /// Collective, after the last stream: makes one trace of all segments.
  void finish(std::span<const trace::RankClock> clocks, const nlohmann::json& environment,
              Ends ends = Ends::here);

private:
  engine::Ranks& ranks_;
  std::filesystem::path directory_;
  std::vector<int> finished_;
  Duration offset_;
  std::optional<SegmentWriter> writer_;
};

/// Trace and nothing of a run that goes on: nothing is left to run.
[[nodiscard]] bool is_complete_stream(const std::filesystem::path& directory);

}  // namespace longhaul::harness
