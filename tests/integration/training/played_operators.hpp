#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/overlap/overlaps.hpp"
#include "training/operators/operator_check.hpp"
#include "training/operators/operator_data_plane.hpp"

namespace longhaul::testing {

/// All ranks of an iteration under an overlap, in this process: each op as soon as what it comes
/// after is done, lanes in a drawn order. Nothing takes time; what is computed and sent is real.
class PlayedOperators {
public:
  PlayedOperators(const std::string& overlap, const Schedule& schedule, const Scenario& scenario,
                  std::uint64_t order_seed = 1, const nn::OptimizerOptions& optimizer = {});

  void iterate(int iteration);
  /// Steps the optimizers, and holds all of it against one rank.
  [[nodiscard]] std::vector<training::WrongTensor> step_and_check(int iteration);

  /// Changes the payload of each message that a collective moves, as it leaves; `before` is the
  /// same message's of the iteration before, empty in the first.
  using Change = std::function<void(const plan::StepMessage& message, OpId send,
                                    std::span<float> numbers, std::span<const float> before)>;
  void change(Change change) { change_ = std::move(change); }
  [[nodiscard]] const Plan& plan() const { return lowered_.plan; }
  [[nodiscard]] const collective::CommunicationRef& communication_of(OpId step) const {
    return lowered_.communication_of[stepped_of(plan().op(step))];
  }
  [[nodiscard]] const collective::Communication& communication(OpId step) const {
    const auto& ref = communication_of(step);
    return iteration_plan_.stages[ref.stage].communications[ref.communication];
  }
  [[nodiscard]] double largest_difference() const { return check_->largest(); }

private:
  struct PlayedRank {
    std::unique_ptr<nn::TensorOps> math, step_math;
    std::unique_ptr<nn::DeviceMemory> memory, step_memory;
    std::unique_ptr<training::OperatorWork> work;
    std::unique_ptr<training::OperatorDataPlane> data_plane;
  };
  [[nodiscard]] PlayedRank& rank_of(OpId id) { return ranks_[index(plan().rank_of(id))]; }
  [[nodiscard]] bool try_run(OpId id);
  [[nodiscard]] bool receive(OpId recv);
  void send(OpId id);
  void sum_over_tensor_ranks();
  [[nodiscard]] double loss();

  collective::IterationPlan iteration_plan_;
  collective::LoweredIteration lowered_;
  std::vector<PlayedRank> ranks_;
  std::uint64_t order_seed_;
  std::vector<bool> done_;
  std::map<OpId, engine::Payload> on_the_way_;  ///< by send
  std::map<OpId, std::vector<float>> sent_;     ///< of the iteration before, by send
  Change change_;
  std::optional<training::OperatorCheck> check_;
  int steps_ = 0;
};

}  // namespace longhaul::testing
