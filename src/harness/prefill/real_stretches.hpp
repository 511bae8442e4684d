#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "device/stream_device.hpp"
#include "harness/prefill/served_check.hpp"
#include "harness/session/layer_session.hpp"

namespace longhaul::harness {

/// Throws Error where the run's blocks and prompts cannot be computed: says what to change.
void check_real_stretches(const PlannedStretches& planned, const PrefillSettings& settings);

/// Real layers of training and of the served models under the stretches of a run, on one rank. A
/// stretch is an iteration of training, after which its optimizer steps. What takes less time than
/// planned takes the planned one, so that windows are where blocks are. Every call is collective.
class RealStretches {
public:
  /// All outlive this.
  RealStretches(engine::Ranks& ranks, const PlannedStretches& planned,
                const PrefillSettings& settings);
  ~RealStretches();

  /// The next stretch: with prefill, or without. `live`: its plan, where sources say what it is.
  void begin(const FilledStretch* with, const prefill::LivePlan* live = nullptr);
  /// Hears on this rank what sources draw.
  [[nodiscard]] prefill::DrawListener& listener() { return served_; }
  [[nodiscard]] engine::Device& device() { return device_; }
  [[nodiscard]] engine::DataPlane& data_plane();
  /// It is over: steps the optimizer and compares gradients with one rank's. Adds wrong ones to
  /// `checks` of rank 0.
  void end(engine::Checks& checks);
  /// Compares what was made of the prompts of the last stretch with prefill. `outcome`: on rank 0.
  void check_prompts(const FilledStretch& with, const StretchOutcome* outcome);

  /// On rank 0, call once.
  struct Results {
    TrainingOutcome training;
    ServedReport served;
    std::int64_t ops = 0;     ///< blocks and prompts, of all stretches
    std::int64_t longer = 0;  ///< of these, that took longer than planned
  };
  [[nodiscard]] Results finish();

private:
  class Work;
  class Payloads;

  engine::Ranks& ranks_;
  const PlannedStretches& planned_;
  PlannedSchedule training_;
  LayerSession session_;
  ServedWork served_;
  const Plan* plan_ = nullptr;                  ///< of the stretch
  std::unordered_map<OpId, OpId> training_of_;  ///< by op of it
  std::unique_ptr<Work> work_;
  std::unique_ptr<Payloads> payloads_;
  std::optional<ServedCheck> check_;  ///< on rank 0
  int played_ = 0;
  device::StreamDevice device_;  ///< last: it uses the others
};

}  // namespace longhaul::harness
