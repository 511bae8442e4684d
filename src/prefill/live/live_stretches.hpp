#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "prefill/live/live_controller.hpp"
#include "prefill/live/live_kv.hpp"
#include "prefill/live/live_rank.hpp"
#include "prefill/lowering/filled_plan.hpp"

namespace longhaul::prefill {

struct LiveOptions {
  LiveControllerOptions controller;
  LiveManners manners;
  int slots = 0;                     ///< prompts that a GPU may begin in a stretch; 0: slots_of()
  std::optional<KvSending> kv{};     ///< nullopt: keys and values stay
  DrawListener* listener = nullptr;  ///< of the ranks of this process
  /// What controller and GPUs keep account of; nullptr: memory counts nothing. Of an open loop.
  std::shared_ptr<const MemoryBesideBlocks> memory{};
};

/// Stretches that a controller fills while they are played: the plan, its sources, and what carries
/// over from one to the next. Who plays all ranks (a simulator) plays plan(); so does each rank by
/// itself, of which the controller's alone decides. For each stretch:
///     stretches.begin();                        // everywhere
///     play(stretches.plan());
///     const auto begun = ...;                   // begun() of all ranks
///     const auto filled = stretches.end(...);   // on the controller's rank, or of all
class LiveStretches {
public:
  /// `training` with its predicted times, the bubbles of a stretch cut at its ends. All but the
  /// options live as long, `arrivals` too; `file`: of a backlog.
  LiveStretches(const Plan& training, const OpTimes& times, const IterationBubbles& stretch,
                const std::vector<Served>& served, const std::vector<Request>& file,
                Arrivals& arrivals, Rank controller, LiveOptions options);
  /// Its sources know where it is.
  LiveStretches(const LiveStretches&) = delete;
  LiveStretches& operator=(const LiveStretches&) = delete;

  [[nodiscard]] const Plan& plan() const { return live_.plan; }
  [[nodiscard]] const LivePlan& live() const { return live_; }
  [[nodiscard]] LiveController& controller() { return controller_; }
  [[nodiscard]] const LiveController& controller() const { return controller_; }
  void begin();
  /// Slots that GPUs of this process have begun in the stretch.
  [[nodiscard]] std::vector<BegunSlot> begun() const { return all_of(&LiveRankLog::begun); }
  /// What they have sent, and first tokens, likewise.
  [[nodiscard]] std::vector<SentSlice> sent() const { return all_of(&LiveRankLog::sent); }
  [[nodiscard]] std::vector<DrawnToken> tokens() const { return all_of(&LiveRankLog::tokens); }
  /// Of the GPUs of this process, and of the controller where it is here, in the stretch.
  [[nodiscard]] LiveTally tally() const;

private:
  template <typename What>
  [[nodiscard]] std::vector<What> all_of(std::vector<What> LiveRankLog::*what) const {
    std::vector<What> all;
    for (const LiveRankLog& log : logs_)
      all.insert(all.end(), (log.*what).begin(), (log.*what).end());
    return all;
  }
  void add_kv_sources(const std::vector<Served>& served);

  LivePlan live_;
  TrainingGraph graph_;
  LiveOptions options_;
  LiveController controller_;
  std::vector<LiveRankLog> logs_;  ///< by rank
  std::vector<std::unique_ptr<LiveDecoder>> decoders_;
};

/// The plan of a stretch with the requests that its slots got, its stages with the prompts that
/// they are of, and answers by decision: what FilledPlan is of a plan that was filled before.
/// Times of the placement count from the stretch's begin. Slots of other requests are left out.
struct LiveFilled {
  FilledPlan filled;
  std::vector<Decision> decisions;
  std::vector<OpId> answers;   ///< by decision
  std::vector<Duration> told;  ///< by decision: LivePlaced::told
};
[[nodiscard]] LiveFilled fill_slots(const LivePlan& live, const std::vector<Served>& served,
                                    const std::vector<BegunSlot>& begun,
                                    const std::vector<LivePlaced>& placed,
                                    const std::vector<SentSlice>& sent = {},
                                    const std::vector<DrawnToken>& tokens = {});

}  // namespace longhaul::prefill
