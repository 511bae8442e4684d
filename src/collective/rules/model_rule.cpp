#include "collective/rules/model_rule.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>

namespace longhaul::collective {
namespace {

__extension__ using Wide = __int128;

Duration left_of(Duration communication, int microbatches, Duration each) {
  const Wide left =
      static_cast<Wide>(communication.count()) - static_cast<Wide>(microbatches) * each.count();
  return Duration{static_cast<std::int64_t>(std::max<Wide>(left, 0))};
}

/// The least number, at most `most`, beyond which no more is hidden.
int least_that_hides(Duration communication, Duration each, int most) {
  if (each <= Duration::zero() || communication <= Duration::zero()) return 1;
  const std::int64_t needed = (communication.count() - 1) / each.count() + 1;
  return static_cast<int>(std::clamp<std::int64_t>(needed, 1, most));
}

}  // namespace

std::optional<ModelChoice> model_choice(const ModelCosts& costs) {
  std::int64_t in_memory = costs.microbatches;
  if (costs.activation > Bytes{})
    in_memory = std::min(in_memory, costs.memory.count() / costs.activation.count());
  std::optional<ModelChoice> best;
  const auto rank = [](const ModelChoice& choice) {
    return std::tuple{choice.exposed, choice.forward + choice.backward, choice.forward};
  };
  for (int forward = 1; forward <= in_memory && forward < costs.microbatches; ++forward) {
    const int most =
        static_cast<int>(std::min<std::int64_t>(in_memory, costs.microbatches - forward));
    const int backward = least_that_hides(costs.scatter, costs.backward, most);
    const ModelChoice choice{left_of(costs.gather, forward, costs.forward) +
                                 left_of(costs.scatter, backward, costs.backward),
                             forward, backward};
    if (!best || rank(choice) < rank(*best)) best = choice;
  }
  return best;
}

}  // namespace longhaul::collective
