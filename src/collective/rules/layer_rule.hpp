#pragma once

#include "base/units.hpp"

namespace longhaul::collective {

/// What a backward layer consists of (Centauri, equation 1).
struct LayerCosts {
  Duration weight_gather{};            ///< T(W_AG)
  Duration activation_gradient{};      ///< T(G_act)
  Duration activation_gather{};        ///< T(act_AG)
  Duration weight_gradient{};          ///< T(G_w)
  Duration activation_scatter{};       ///< T(act_RS)
  Duration weight_gradient_scatter{};  ///< T(G_w_RS)
  Duration others{};
};

/// What it takes with one kind of gradient ahead of the other; the shorter one is taken.
struct LayerTimes {
  Duration activation_first{};  ///< T_1
  Duration weight_first{};      ///< T_2
};
[[nodiscard]] LayerTimes layer_times(const LayerCosts& costs);

}  // namespace longhaul::collective
