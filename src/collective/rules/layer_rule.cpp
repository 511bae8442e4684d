#include "collective/rules/layer_rule.hpp"

#include <algorithm>

namespace longhaul::collective {

LayerTimes layer_times(const LayerCosts& costs) {
  return {.activation_first = costs.weight_gather +
                              std::max(costs.activation_gradient, costs.activation_gather) +
                              std::max(costs.weight_gradient, costs.activation_scatter) +
                              std::max(costs.weight_gradient_scatter, costs.others),
          .weight_first = costs.activation_gather +
                          std::max(costs.weight_gradient, costs.weight_gather) +
                          std::max(costs.activation_gradient, costs.weight_gradient_scatter) +
                          costs.activation_scatter + costs.others};
}

}  // namespace longhaul::collective
