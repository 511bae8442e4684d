#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "compress/tensor/tensor.hpp"
#include "scenario/training.hpp"
#include "training/parts/state_bytes.hpp"

namespace longhaul::training {

/// Activations and their gradients between stages, as they travel, with what a rank remembers of
/// each message from one iteration to the next (ActivationFeedback). A message is an op of the
/// plan: of one replica, edge, direction and microbatch.
class StageMessages {
public:
  explicit StageMessages(const ActivationCompression& how);

  /// The payload of the send in its next iteration. Throws compress::NotFinite.
  [[nodiscard]] std::vector<std::byte> sent(OpId send, std::vector<float> numbers);
  /// What the receive brings in its next iteration; `source` names it where it is refused.
  [[nodiscard]] std::vector<float> received(OpId receive, std::span<const std::byte> payload,
                                            std::size_t count, std::string_view source);
  /// That a payload of so many numbers may have, and all have but those of `topk`.
  [[nodiscard]] std::size_t most_bytes(std::size_t count) const {
    return compress::most_tensor_bytes(count, coding_);
  }
  [[nodiscard]] bool fits(std::size_t bytes, std::size_t count) const;

  void save(StateWriter& to) const;
  void load(StateReader& from);

private:
  [[nodiscard]] std::vector<float>& memory_of(OpId op, std::size_t count);

  compress::TensorCoding coding_;
  ActivationFeedback feedback_;
  /// By send: what waits, or what its receiver has; by receive: what came. Empty without feedback.
  std::map<OpId, std::vector<float>> memory_;
};

}  // namespace longhaul::training
