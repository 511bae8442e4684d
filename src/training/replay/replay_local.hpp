#pragma once

#include <memory>
#include <span>
#include <vector>

#include "training/replay/replay.hpp"
#include "training/replay/replay_chunks.hpp"
#include "training/replay/replay_model.hpp"
#include "training/replay/replay_step.hpp"

namespace longhaul::training {

/// Numbers as 4 bits hold them: of each 128 after each other whole multiples, ties to even, up to 7
/// each way, of their largest magnitude over 7.
void round_to_fifteen(std::span<float> numbers);

/// A run of ReplayInput::local: replicas step by themselves, microbatch by microbatch, and parts
/// meet in turn.
class ReplayLocal {
public:
  /// Both outlive this. `input` is one of a run.
  ReplayLocal(nn::TensorOps& math, const ReplayInput& input);
  [[nodiscard]] Replayed run();

private:
  /// Of one replica; its weights are those before its next step.
  struct Alone {
    std::unique_ptr<ReplayModel> model;
    ReplayStepper stepper;
    std::vector<float> weights;
    double loss_share;             ///< of its microbatch's predictions in an iteration's
    float weight = 1;              ///< of its outer gradients: its batch over the mean one
    std::vector<float> waiting{};  ///< where not all is sent, or rounding is fed back
  };
  void step(Alone& replica, ReplicaId id, int iteration, MicrobatchId microbatch);
  /// The fragment that is exchanged after that many steps; -1: none.
  [[nodiscard]] int due(int steps) const;
  [[nodiscard]] std::vector<float> outer_gradient(const Alone& replica,
                                                  const ReplayPart& part) const;
  /// The outer step of a part, by its number.
  void exchange(std::size_t part);
  void exchange_largest(std::size_t part);
  /// The largest numbers of each tile of a part, which keeps the rest.
  [[nodiscard]] ReplaySet taken_largest(std::size_t part, std::span<float> waiting) const;
  void mix(std::size_t part);
  void for_parts_of(int fragment, void (ReplayLocal::*work)(std::size_t part));

  const ReplayInput& input_;
  const ReplayLocalSteps& local_;
  nn::DeviceMemory memory_;
  std::vector<Alone> replicas_;
  std::vector<int> sites_;                      ///< of each replica; empty: none sums on the way
  std::vector<std::vector<ReplayTile>> tiles_;  ///< of each part, where not all numbers are sent
  std::vector<float> global_, momenta_;         ///< what all have after the last exchanges
};

}  // namespace longhaul::training
