#pragma once

#include <map>
#include <memory>
#include <vector>

#include "device/stream_device.hpp"
#include "engine/engine.hpp"
#include "harness/training/train_curve.hpp"
#include "nn/memory.hpp"
#include "training/parts/espresso.hpp"
#include "training/parts/replica_work.hpp"
#include "training/parts/set_data_plane.hpp"

namespace longhaul::harness {

/// The samples of an iteration over all replicas, in their order: of each `batches` sequences a
/// microbatch. So what is learned from does not depend on how it is divided.
class SampleOrder {
public:
  explicit SampleOrder(const Scenario& scenario);
  [[nodiscard]] const std::vector<int>& batches() const { return batches_; }
  /// Sequences of an iteration.
  [[nodiscard]] std::int64_t samples() const { return first_.back() * microbatches_; }
  [[nodiscard]] std::uint64_t first(int iteration, ReplicaId replica,
                                    MicrobatchId microbatch) const;
  [[nodiscard]] nn::TextSource text(std::shared_ptr<const training::TrainingData> data) const;

private:
  std::vector<int> batches_;
  std::vector<std::int64_t> first_;  ///< by replica: sequences of a microbatch before it; their sum
  int microbatches_;
};

/// What one rank does of a curve: its part of the stream, and what it remembers.
class TrainRank {
public:
  /// `request` and `settings` outlive this.
  TrainRank(engine::Ranks& ranks, const TrainRequest& request, const TrainSettings& settings);

  /// Collective: iterations `first` to `past` - 1, after all before them. The weather is then so
  /// old, as rank 0 says.
  void run(int first, int past, Duration age);
  void save(training::StateWriter& to) const { work_->save(to); }
  void load(training::StateReader& from, int iterations) { work_->load(from, iterations); }
  /// After the last one.
  void finish() { work_->finish(); }

  /// What this rank remembers of the iterations since the last call.
  struct Stretch {
    TimePoint began = kNever;       ///< stamps of this host's clock: its first block,
    std::vector<TimePoint> ends{};  ///< and of each iteration its last end
    std::vector<double> losses{};
    std::map<int, std::vector<float>> kept{};
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
  [[nodiscard]] const training::ReplicaWork& work() const { return *work_; }
  [[nodiscard]] const SampleOrder& samples() const { return samples_; }
  [[nodiscard]] double targets() const { return targets_; }

private:
  void take(const engine::IterationResult& result);
  [[nodiscard]] training::ReplicaWork::Settings work_settings() const;

  engine::Ranks& ranks_;
  const TrainRequest& request_;
  const TrainSettings& settings_;
  Scenario scenario_;
  SampleOrder samples_;
  double targets_;  ///< numbers that are predicted in an iteration
  Schedule schedule_;
  plan::PartExchanges exchanges_;
  std::vector<CompressMethod> of_parts_;  ///< of Espresso, by part; before the plan that chooses
  Plan plan_;
  std::unique_ptr<nn::TensorOps> math_;
  nn::DeviceMemory memory_;
  std::unique_ptr<training::ReplicaWork> work_;
  std::unique_ptr<training::SetDataPlane> sets_;
  std::unique_ptr<device::StreamDevice> device_;  ///< nullptr: blocks are timed
  Stretch stretch_;
};

}  // namespace longhaul::harness
