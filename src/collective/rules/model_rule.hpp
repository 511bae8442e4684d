#pragma once

#include <optional>

#include "base/units.hpp"

namespace longhaul::collective {

/// What Centauri's equation 2 (section 3.2.3) decides by.
struct ModelCosts {
  Duration gather{};    ///< C_AG: of a stage's weights
  Duration scatter{};   ///< C_RS: of its gradients
  Duration forward{};   ///< C_fw: of a microbatch
  Duration backward{};  ///< C_bw
  Bytes activation{};   ///< m: what a microbatch keeps
  Bytes memory{};       ///< M: what is left for activations
  int microbatches = 0;
};

/// How many microbatches of a chunk are launched together.
struct ModelChoice {
  Duration exposed{};  ///< T: communication that they do not hide
  int forward = 0;     ///< L_1
  int backward = 0;    ///< L_2
};

/// The one that exposes least, of those the one that launches least together, of those the one with
/// the least L_1. Both are at least 1; nothing where no two fit the memory and the microbatches.
[[nodiscard]] std::optional<ModelChoice> model_choice(const ModelCosts& costs);

}  // namespace longhaul::collective
