#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
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
  /// All live as long. `arrivals`: nullptr, those of the load. `listener`: of real work. `closes`:
  /// of the controller.
  LivePairs(const PlannedStretches& planned, const PrefillSettings& settings,
            prefill::Arrivals* arrivals = nullptr, prefill::DrawListener* listener = nullptr,
            std::function<bool()> closes = {});

  [[nodiscard]] const prefill::LivePlan& plan() const { return stretches_.live(); }
  /// The plan of the next stretch, and training's planned times in it.
  [[nodiscard]] const FilledStretch& open();
  /// Of the stretch that was opened: the requests that it got. Collective; the slots that were
  /// begun, the stretch's wall time and the ends of prompts (`results`, of rank 0) are told to all
  /// ranks.
  [[nodiscard]] FilledStretch close(const engine::Ranks& ranks, const OpResults& results);
  /// The stretch as simulated, with the noise of blocks that `number` draws.
  [[nodiscard]] FilledStretch simulate(int number);

  /// After the last stretch: to each request that was answered, by the clock of requests. On the
  /// controller's rank.
  [[nodiscard]] std::vector<prefill::Decision> answers();
  /// Requests whose sender went before they began, likewise.
  [[nodiscard]] const std::vector<prefill::Decision>& cancelled() const {
    return stretches_.controller().cancelled();
  }
  /// Requests that failed with their datacenter's controller, likewise.
  [[nodiscard]] const std::vector<prefill::Decision>& failed() const {
    return stretches_.controller().failed();
  }
  /// LiveController::open_on().
  [[nodiscard]] std::vector<std::int64_t> open_on(Rank rank) const {
    return stretches_.controller().open_on(rank);
  }
  /// After answers(): who asked, by id, as its source counts.
  [[nodiscard]] std::vector<std::int64_t> offered() const {
    return stretches_.controller().offered();
  }

private:
  /// What all GPUs and decode ranks began in a stretch.
  struct Drawn {
    std::vector<prefill::BegunSlot> begun;
    std::vector<prefill::SentSlice> sent;
    std::vector<prefill::DrawnToken> tokens;
  };
  [[nodiscard]] FilledStretch filled(const Drawn& drawn,
                                     const std::vector<prefill::LivePlaced>& placed,
                                     const std::vector<prefill::LivePlaced>& waiting) const;
  /// What waits for the next stretch, after one that took so long; arrivals from its begin.
  [[nodiscard]] std::vector<prefill::LivePlaced> waiting(Duration wall) const;
  [[nodiscard]] std::vector<prefill::LivePlaced> end_stretch(
      const std::vector<prefill::BegunSlot>& begun, Duration wall,
      const std::map<std::int32_t, Duration>& ended);
  [[nodiscard]] Duration wall_of(const OpResults& results) const;
  [[nodiscard]] std::map<std::int32_t, Duration> ends_of(const Drawn& drawn,
                                                         const OpResults& results) const;

  const PlannedStretches& planned_;
  prefill::RealTimes real_times_;
  prefill::TraceArrivals arrivals_;
  prefill::LiveStretches stretches_;
  FilledStretch opened_;
  Run run_;
  std::vector<prefill::Decision> answers_;
};

/// GPUs that could have more slices of keys and values to send in a stretch than a live run has for
/// each, and the most that one could.
struct ShortOfSlices {
  int gpus = 0;
  std::int64_t most = 0;
};
[[nodiscard]] ShortOfSlices short_of_slices(const PlannedStretches& planned,
                                            const PrefillSettings& settings);
/// For people; empty: none is short.
[[nodiscard]] std::string warning_of(const ShortOfSlices& found);

/// What a simulation of all stretches says of a live run.
[[nodiscard]] LivePrediction predict_live(const PlannedStretches& planned,
                                          const PrefillSettings& settings);

}  // namespace longhaul::harness
