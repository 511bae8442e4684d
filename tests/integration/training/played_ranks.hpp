#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "schedule/generators/generate.hpp"
#include "training/gradient_check.hpp"
#include "training/layer_work.hpp"
#include "training/tensor_data_plane.hpp"

namespace longhaul::testing {

/// A tiny model on `stages` devices in two datacenters, of `layers` layers.
[[nodiscard]] Scenario tiny_scenario(int stages, int microbatches, int layers);

/// All ranks of a plan in this process: each op as soon as what it comes after is done, lanes in a
/// drawn order. Nothing takes time; what is computed is real.
class PlayedRanks {
public:
  PlayedRanks(const Schedule& schedule, const Scenario& scenario,
              const nn::OptimizerOptions& optimizer = {}, std::uint64_t order_seed = 1);

  void iterate(int iteration);
  /// Steps the optimizers, and holds all of it against one rank.
  [[nodiscard]] std::vector<training::WrongTensor> step_and_check(int iteration);

  [[nodiscard]] training::LayerWork& work(std::size_t rank) { return *ranks_[rank].work; }
  [[nodiscard]] const nn::DeviceMemory& memory(std::size_t rank) const {
    return *ranks_[rank].memory;
  }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  /// Their payloads change places from now on; the first waits for the second.
  void swap(OpId one, OpId other) { swapped_ = {one, other}; }
  /// Sends, in order, of one rank to another.
  [[nodiscard]] std::vector<OpId> sends(Rank from, Rank to) const;

private:
  struct PlayedRank {
    std::unique_ptr<nn::TensorOps> math;
    std::unique_ptr<nn::DeviceMemory> memory;
    std::unique_ptr<training::LayerWork> work;
    std::unique_ptr<training::TensorDataPlane> data_plane;
    std::unique_ptr<engine::RelayTable> forwards;
    std::map<OpId, engine::Payload> kept;  ///< by send
  };
  [[nodiscard]] PlayedRank& rank_of(OpId id) { return ranks_[index(plan_.rank_of(id))]; }
  [[nodiscard]] bool is_ready(OpId id) const;
  [[nodiscard]] bool try_run(OpId id);
  [[nodiscard]] bool receive(OpId recv);
  [[nodiscard]] bool meet(OpId collective);
  [[nodiscard]] std::vector<std::vector<float>> numbers(
      nn::ArrayView (training::StageShard::*what)() const);

  Schedule schedule_;
  Scenario scenario_;
  Plan plan_;
  training::TrainingModel model_;
  std::vector<PlayedRank> ranks_;
  std::uint64_t order_seed_;
  std::vector<bool> done_;
  std::map<OpId, engine::Payload> on_the_way_;  ///< by send
  std::vector<OpId> waiting_;                   ///< collectives whose rank is there
  std::optional<std::pair<OpId, OpId>> swapped_;
  training::ParameterMap map_;
  std::optional<training::GradientCheck> check_;
  int steps_ = 0;
};

}  // namespace longhaul::testing
