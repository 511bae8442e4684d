#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compress/optimizer/optimizer_settings.hpp"
#include "nn/layers/chunk.hpp"
#include "scenario/training.hpp"
#include "training/parts/state_bytes.hpp"

namespace longhaul::training {

/// A payload that came, or one's own; `source` names its sender for a refusal.
struct SetPayload {
  std::string source;
  std::span<const std::byte> payload;
};

/// Plays on a copy of a part's weights what numbers have missed.
using CatchUp = std::function<void(std::span<float> weights)>;

/// What one replica does with the gradients of one part, apart from when: they become a set that it
/// sends, and what all have sent becomes a step (docs/training.md, "What an iteration computes").
/// Calls of one iteration follow each other as below; own_set() of the next one may come between
/// any two of them, on another thread.
class PartMethod {
public:
  PartMethod() = default;
  virtual ~PartMethod() = default;
  PartMethod(const PartMethod&) = delete;
  PartMethod& operator=(const PartMethod&) = delete;

  /// The payload of this replica's set; remembers what it does not say. Throws NotFinite.
  [[nodiscard]] virtual std::vector<std::byte> own_set(int iteration,
                                                       std::span<const float> gradient) = 0;
  /// Of a method with several rounds: what this replica sends in the next one, after the sets that
  /// step() would take of this one, in their order.
  [[nodiscard]] virtual std::vector<std::byte> answer(int iteration,
                                                      std::span<const SetPayload> sets);
  /// At the replica that chooses for its site, in each round: the sum of the site's sets, in order
  /// of replica.
  [[nodiscard]] virtual std::vector<std::byte> site_set(int iteration,
                                                        std::span<const SetPayload> sets) = 0;
  /// The sum of the sets that step() takes, those of the last round, in their order.
  virtual void merge(int iteration, std::span<const SetPayload> sets) = 0;
  virtual void step(int iteration, std::span<float> weights) = 0;
  /// What makes of a copy of the weights after the last step() those of dense steps, later: with
  /// `exact` it plays what numbers have missed since they were touched. Nothing: they are so.
  [[nodiscard]] virtual CatchUp catch_up() const { return {}; }
  /// After the last step: what a site left is in the residual.
  virtual void finish() = 0;

  /// What it remembers between two iterations, for a checkpoint.
  virtual void save(StateWriter& to) const = 0;
  /// Of a method that was made the same; instead of its first iteration. Throws Error where it was
  /// not.
  virtual void load(StateReader& from) = 0;

  /// The most bytes that a payload can take.
  [[nodiscard]] virtual std::size_t largest_set() const = 0;
  /// What waits to be sent, of all numbers of the part; empty where nothing ever does.
  [[nodiscard]] virtual std::span<const float> residual() const = 0;
  /// Sums over the run of this replica's gradients, and of what merge() has summed. Empty unless
  /// the method forgets nothing.
  [[nodiscard]] virtual std::span<const double> gradients_seen() const = 0;
  [[nodiscard]] virtual std::span<const double> sums_seen() const = 0;

  /// The share of the numbers that is kept from `iteration` on, which has not begun; ascending. Of
  /// sparse methods.
  virtual void keep_from(int iteration, double keep);
};

/// Where a part's replica stands: how many sets make up what is kept together.
struct PartPlace {
  std::int64_t numbers = 0;  ///< of the part
  int replicas = 1, sites = 1;
  int staleness = 0;
  int number = 0;                             ///< among the parts of the model
  bool accounts = true;                       ///< sums up all gradients and steps
  std::vector<nn::ParameterPlace> tensors{};  ///< among the part's numbers; between them are zeros
};

struct StepSettings {
  compress::OptimizerSettings optimizer;
  float learning_rate = 1e-3F;
};

using MakePartMethod = std::function<std::unique_ptr<PartMethod>(const PartPlace&)>;

/// Throws Error where the method's sets cannot be exchanged so.
void check_exchange(const GradientCompression& compress);

/// Of [train.compress]: all numbers, or those that a sparsifier chooses. Throws Error where its
/// settings cannot be.
[[nodiscard]] std::unique_ptr<PartMethod> make_part_method(const GradientCompression& compress,
                                                           const PartPlace& place,
                                                           const StepSettings& step);

/// Adds to sums of a run, which are empty before the first.
void add_up(std::vector<double>& sums, std::span<const float> numbers);

/// The same of gradients that join `waiting` numbers, of which (1 - `decay`) is forgotten first:
/// that counts as never having been there. `waiting` may be longer.
void add_decayed(std::vector<double>& sums, std::span<const float> gradient,
                 std::span<const float> waiting, float decay);

/// Sum of payloads of encode_dense(), of `numbers` numbers each, in their order. Throws Error where
/// one is none.
[[nodiscard]] std::vector<float> sum_of_dense(std::span<const SetPayload> sets,
                                              std::int64_t numbers);

}  // namespace longhaul::training
