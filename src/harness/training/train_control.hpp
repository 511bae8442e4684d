#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/events/stream_control.hpp"
#include "report/adapted_stream.hpp"
#include "schedule/schedule.hpp"
#include "training/parts/state_bytes.hpp"

namespace longhaul::harness {

/// A scenario with [train.adapt] as ranks play it: with a rank for the controller after those that
/// train, in the datacenter of the first of them, unless a [[service]] is one; and with batches.
[[nodiscard]] Scenario with_controller(Scenario scenario);

/// StellaTrain's controller beside ranks that train (section 4.1): they report when their blocks
/// ran and their messages held links, it decides, and all change at the iteration that it names.
class TrainControl final : public engine::StreamControl {
public:
  /// Called on each rank with each decision, before its iteration begins there.
  using Changed = std::function<void(const planner::Adaptation&)>;
  /// Of a run of `iterations`. All but `changed` outlive this. Throws Error where nothing can be
  /// adapted.
  TrainControl(const Schedule& schedule, const Scenario& scenario, const Plan& plan, int iterations,
               Rank self, Changed changed);

  /// Iterations from `first` on follow, after all before them.
  void begin(int first);
  /// What the decisions so far have made of the plan.
  [[nodiscard]] const std::vector<plan::StreamSetting>& settings() const { return settings_; }
  [[nodiscard]] const std::vector<planner::Adaptation>& decisions() const { return decisions_; }
  /// Of the first `iterations`.
  [[nodiscard]] report::AdaptationReport report_of(int iterations) const;

  void save(training::StateWriter& to) const;
  /// Of a control that was made the same; calls `changed` with each decision so far.
  void load(training::StateReader& from);

  [[nodiscard]] Rank controller() const override { return controller_rank_; }
  [[nodiscard]] std::size_t report_size() const override;
  [[nodiscard]] std::size_t verdict_size() const override;
  [[nodiscard]] bool is_due(int iteration) const override;
  [[nodiscard]] int first_open(int iteration) const override;
  [[nodiscard]] std::vector<std::byte> report(int iteration, const OpTimes& times) override;
  void hear(int iteration, Rank from, std::span<const std::byte> report) override;
  [[nodiscard]] std::vector<std::byte> verdict(int iteration) override;
  [[nodiscard]] std::optional<plan::StreamSetting> heed(
      int iteration, std::span<const std::byte> verdict) override;

private:
  void take(const planner::Adaptation& made);

  const Schedule& schedule_;
  const Scenario& scenario_;
  const Plan& first_plan_;
  int iterations_;
  Rank self_, controller_rank_;
  Changed changed_;
  planner::TrainingController decider_;
  planner::TuneChoice first_setting_;
  report::StreamTelemetry telemetry_;
  int began_ = 0;  ///< this stretch: telemetry is not of earlier ones
  std::vector<planner::Adaptation> decisions_;
  std::vector<plan::StreamSetting> settings_;
  std::optional<Plan> last_plan_;
};

}  // namespace longhaul::harness
