#include <queue>

#include "base/error.hpp"
#include "scenario/model_costs.hpp"

namespace longhaul::scenario {
namespace {

/// A stage and its time with one layer more.
struct Next {
  double time;
  double speed;
  std::size_t stage;
  bool operator>(const Next& other) const {
    if (time != other.time) return time > other.time;
    return speed != other.speed ? speed < other.speed : stage > other.stage;
  }
};

}  // namespace

// Layers are handed out one by one, each to the stage that is then fastest. Exact, because times
// grow with each layer: were another division better, it would give some layer of our slowest stage
// to a stage that refused it for being slower still. Of stages that tie the fastest takes the
// layer, since without it the others end earlier.
std::optional<std::vector<int>> balanced_layers(int layers, const std::vector<double>& speeds,
                                                const std::vector<int>& most) {
  LONGHAUL_ASSERT(speeds.size() == most.size(), "{} speeds, {} limits", speeds.size(), most.size());
  std::vector<int> of_stage(speeds.size(), 1);
  int left = layers - static_cast<int>(speeds.size());
  if (left < 0) return std::nullopt;
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  const auto offer = [&](std::size_t stage) {
    if (of_stage[stage] < most[stage])
      next.push({(of_stage[stage] + 1) / speeds[stage], speeds[stage], stage});
  };
  for (std::size_t stage = 0; stage < speeds.size(); ++stage) {
    if (most[stage] < 1) return std::nullopt;
    offer(stage);
  }
  for (; left > 0; --left) {
    if (next.empty()) return std::nullopt;
    const std::size_t stage = next.top().stage;
    next.pop();
    ++of_stage[stage];
    offer(stage);
  }
  return of_stage;
}

}  // namespace longhaul::scenario
