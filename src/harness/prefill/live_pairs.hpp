#pragma once

#include <memory>
#include <vector>

#include "engine/ranks.hpp"
#include "harness/prefill/prefill_run.hpp"
#include "prefill/live/live_stretches.hpp"
#include "prefill/play/real_times.hpp"

namespace longhaul::harness {

/// Stretches of a run that the controller's rank fills while they are played, one after the other:
/// as this rank plays them, or as one process simulates all ranks.
class LivePairs {
public:
  /// Both live as long.
  LivePairs(const PlannedStretches& planned, const PrefillSettings& settings);

  /// The plan of the next stretch, and training's planned times in it.
  [[nodiscard]] const FilledStretch& open();
  /// Of the stretch that was opened: the requests that it got. Collective; the slots that were
  /// begun and the stretch's wall time (of rank 0) are told to all ranks.
  [[nodiscard]] FilledStretch close(const engine::Ranks& ranks, Duration wall);
  /// The stretch as simulated, with the noise of blocks that `number` draws.
  [[nodiscard]] FilledStretch simulate(int number);

  /// After the last stretch: to each request that was answered, by the clock of requests. On the
  /// controller's rank.
  [[nodiscard]] std::vector<prefill::Decision> answers();

private:
  [[nodiscard]] FilledStretch filled(const std::vector<prefill::BegunSlot>& begun,
                                     const std::vector<prefill::LivePlaced>& placed) const;
  [[nodiscard]] std::vector<prefill::LivePlaced> end_stretch(
      const std::vector<prefill::BegunSlot>& begun, Duration wall);

  const PlannedStretches& planned_;
  prefill::RealTimes real_times_;
  prefill::TraceArrivals arrivals_;
  prefill::LiveStretches stretches_;
  FilledStretch opened_;
  Run run_;
  std::vector<prefill::Decision> answers_;
};

/// What a simulation of all stretches says of a live run.
[[nodiscard]] LivePrediction predict_live(const PlannedStretches& planned,
                                          const PrefillSettings& settings);

}  // namespace longhaul::harness
