#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "device/stream_device.hpp"
#include "engine/engine.hpp"
#include "harness/training/train_control.hpp"
#include "harness/training/train_curve.hpp"
#include "nn/memory.hpp"
#include "training/parts/espresso.hpp"
#include "training/parts/replica_work.hpp"
#include "training/parts/set_data_plane.hpp"

namespace longhaul::harness {

/// The samples of an iteration over all replicas, in their order: of each `batches` sequences a
/// microbatch. So what is learned from does not depend on how it is divided. Copies share what
/// changes; all functions are safe to call from several threads at once.
class SampleOrder {
public:
  explicit SampleOrder(const Scenario& scenario);
  /// From `iteration` on, which is after those of earlier calls.
  void change_from(int iteration, std::vector<int> batches);
  [[nodiscard]] std::vector<int> batches(int iteration = 0) const;
  /// Sequences of an iteration.
  [[nodiscard]] std::int64_t samples(int iteration = 0) const;
  [[nodiscard]] std::uint64_t first(int iteration, ReplicaId replica,
                                    MicrobatchId microbatch) const;
  [[nodiscard]] nn::TextSource text(std::shared_ptr<const training::TrainingData> data) const;

private:
  struct Stretch {
    std::vector<int> batches;
    std::int64_t before = 0;  ///< sequences of all iterations before it
    [[nodiscard]] std::int64_t of_microbatch() const {
      return std::accumulate(batches.begin(), batches.end(), std::int64_t{0});
    }
  };
  struct Stretches {
    std::mutex mutex;
    std::map<int, Stretch> from;  ///< by first iteration
  };
  [[nodiscard]] std::pair<int, Stretch> stretch_of(int iteration) const;

  int microbatches_;
  std::shared_ptr<Stretches> stretches_;
};

/// What one rank does of a curve: its part of the stream, and what it remembers.
class TrainRank {
public:
  /// `request` and `settings` outlive this.
  TrainRank(engine::Ranks& ranks, const TrainRequest& request, const TrainSettings& settings);

  /// Collective: iterations `first` to `past` - 1, after all before them. The weather is then so
  /// old, as rank 0 says.
  void run(int first, int past, Duration age);
  void save(training::StateWriter& to) const;
  void load(training::StateReader& from, int iterations);
  /// After the last one.
  void finish();

  /// What this rank remembers of the iterations since the last call.
  struct Stretch {
    /// Stamps of this host's clock, of each iteration: its first block, and its last end.
    std::vector<TimePoint> starts{}, ends{};
    std::vector<double> losses{};
    std::map<int, std::vector<float>> kept{};
    int first = 0;  ///< iteration
    /// By iteration, then part of this rank: how old the update was that F used; 1 is fresh.
    std::vector<std::vector<std::int32_t>> ages{};
    engine::Checks checks;
    bool diverged = false;
    training::SetDataPlane::Sent sent;
    device::StreamDevice::Overruns overruns;  ///< nothing of blocks that are timed
  };
  [[nodiscard]] Stretch take_stretch();

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// nullptr on the rank of the controller.
  [[nodiscard]] const training::ReplicaWork* work() const { return work_.get(); }
  /// After the last update; none on the rank of the controller.
  [[nodiscard]] std::vector<float> weights() const {
    return work_ ? work_->weights() : std::vector<float>{};
  }
  /// nullptr without [train.adapt].
  [[nodiscard]] const TrainControl* control() const { return control_.get(); }
  [[nodiscard]] const SampleOrder& samples() const { return samples_; }
  /// Espresso's choice for each part; empty of others.
  [[nodiscard]] const std::vector<training::PartChoice>& choices() const { return of_parts_; }
  /// Numbers that are predicted in an iteration.
  [[nodiscard]] double targets(int iteration = 0) const;

private:
  void change(const planner::Adaptation& made);
  void take(const engine::IterationResult& result);
  [[nodiscard]] training::ReplicaWork::Settings work_settings() const;

  engine::Ranks& ranks_;
  const TrainRequest& request_;
  const TrainSettings& settings_;
  Scenario scenario_;
  SampleOrder samples_;
  Schedule schedule_;
  plan::PartExchanges exchanges_;
  std::vector<training::PartChoice> of_parts_;  ///< of Espresso, by part; before the plan
  Plan plan_;
  std::unique_ptr<nn::TensorOps> math_;
  nn::DeviceMemory memory_;
  std::unique_ptr<training::ReplicaWork> work_;
  std::unique_ptr<training::SetDataPlane> sets_;
  std::unique_ptr<device::StreamDevice> device_;  ///< nullptr: blocks are timed
  std::unique_ptr<TrainControl> control_;
  Stretch stretch_;
};

}  // namespace longhaul::harness
