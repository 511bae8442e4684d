#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "harness/checkpoint/resume_journal.hpp"
#include "harness/prefill/prefill_run.hpp"
#include "harness/ranks/environment.hpp"
#include "harness/streams/stream_directory.hpp"

namespace longhaul::harness {

/// The trace of --out: stretches without prefill are iterations of the schedule, those with it
/// iterations of SCHEDULE+prefill, both numbered by pair. Each is a segment as soon as its pair is
/// over; nothing is written while a stretch is played.
class PrefillRows {
public:
  /// Collective.
  PrefillRows(engine::Ranks& ranks, const PlannedStretches& planned, const PrefillOptions& options,
              const LivePrediction& predicted, const PrefillSettings& settings,
              Environment& environment, const nlohmann::json& before);
  [[nodiscard]] StretchKeeper keeper();
  /// With --resume: what was over when this part of the run began.
  [[nodiscard]] const EarlierPairs& earlier() const { return earlier_; }
  /// On rank 0, after each pair: for --resume and `longhaul watch`.
  void note(const std::vector<StretchPair>& pairs);
  /// Collective, after the last pair: makes one trace of all segments.
  void finish(nlohmann::json environment, StreamDirectory::Ends ends);
  /// On rank 0: one entry for each part of the run; null where all ran in one.
  [[nodiscard]] nlohmann::json parts() const;
  /// After the record is written.
  void forget();

private:
  Environment& environment_;
  Duration credit_;
  std::optional<StreamDirectory> directory_;
  std::unique_ptr<Journal> journal_;  ///< on rank 0
  std::string schedule_;
  EarlierPairs earlier_;
  std::size_t noted_ = 0;  ///< pairs
};

/// What --check asks for, in place of what was typed.
void make_tiny(PrefillOptions& options);
/// Scenario and requests of it: {"scenario", "requests"}. `kv`: --kv; empty, no keys and values
/// leave. `real`: of layers that are computed.
[[nodiscard]] std::map<std::string, std::string> tiny_input(const std::string& kv = {},
                                                            bool real = false);

/// On rank 0, with --resume: the `check` of a record that is there with its trace, so that nothing
/// is left to run; empty: something is.
[[nodiscard]] std::string check_of_complete(const PlannedStretches& planned,
                                            const PrefillOptions& options);

/// Throws Error, which says how to start it, where there are more or fewer ranks than it needs.
void check_rank_count(const PlannedStretches& planned, const engine::Ranks& ranks,
                      const PrefillOptions& options);

/// On rank 0: prints the answer, writes record.json. Gives back why the run is not sound, where it
/// is not.
[[nodiscard]] std::string report_prefill(const PlannedStretches& planned, const PrefillRun& run,
                                         const PrefillOptions& options,
                                         const PrefillSettings& settings,
                                         const nlohmann::json& environment);

}  // namespace longhaul::harness
