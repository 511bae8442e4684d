#include <algorithm>
#include <functional>
#include <queue>

#include "base/index.hpp"
#include "prefill/stage_windows.hpp"

namespace longhaul::prefill {
namespace {

/// GPU time in windows from the stretch's begin on: piecewise linear, repeats with the period.
class WindowTime {
public:
  WindowTime(const std::vector<FillWindow>& windows, Duration period) : period_{period} {
    std::vector<std::pair<Duration, std::int64_t>> changes;
    const auto add = [&](Duration start, Duration end) {
      changes.emplace_back(start, 1);
      changes.emplace_back(end, -1);
    };
    for (const FillWindow& window : windows) {
      add(window.start, std::min(window.end, period));
      if (window.end > period) add(Duration{}, window.end - period);
    }
    changes.emplace_back(period, 0);
    std::ranges::sort(changes);
    knots_.push_back({});
    for (const auto& [time, change] : changes) {
      Knot& last = knots_.back();
      if (time > last.at)
        knots_.push_back({time, last.sum + last.gpus * (time - last.at), last.gpus + change});
      else
        last.gpus += change;
    }
  }
  [[nodiscard]] Duration until(Duration time) const {
    const Duration inside = time % period_;
    const auto knot = std::prev(std::ranges::upper_bound(knots_, inside, {}, &Knot::at));
    return (time / period_) * knots_.back().sum + knot->sum + knot->gpus * (inside - knot->at);
  }
  [[nodiscard]] Duration of_period() const { return knots_.back().sum; }

private:
  struct Knot {
    Duration at{}, sum{};
    std::int64_t gpus = 0;
  };
  Duration period_;
  std::vector<Knot> knots_;
};

struct FlowPrompt {
  Duration deadline{}, left{};
  bool operator>(const FlowPrompt& other) const { return deadline > other.deadline; }
};

}  // namespace

Duration most_flow(const IterationBubbles& iteration, const std::vector<FillWindow>& windows,
                   const std::vector<Served>& served, const std::vector<Request>& offered,
                   std::int64_t iterations) {
  if (iteration.period <= Duration{}) return {};
  const WindowTime time{windows, iteration.period};
  const Duration end = iteration.period * iterations;
  if (time.of_period() <= Duration{}) return {};
  std::priority_queue<FlowPrompt, std::vector<FlowPrompt>, std::greater<>> waiting;
  Duration used{}, filled{};  // used: GPU time of windows that is over or taken
  const auto run_until = [&](Duration limit) {
    const Duration all = time.until(limit);
    while (!waiting.empty() && used < all) {
      FlowPrompt prompt = waiting.top();
      const Duration room = time.until(std::min(prompt.deadline, limit)) - used;
      const Duration done = std::clamp(room, Duration{}, prompt.left);
      filled += done;
      used += done;
      prompt.left -= done;
      waiting.pop();
      if (prompt.left > Duration{} && prompt.deadline > limit) waiting.push(prompt);
    }
    used = std::max(used, all);
  };
  for (const Request& request : offered) {
    const ServedModel& model = served[served_index(request, served)].model;
    const auto whole = model.time(request.tokens);
    if (!whole || request.arrival >= end) continue;
    run_until(request.arrival);
    const Duration deadline =
        model.slo_ttft ? std::min(end, request.arrival + *model.slo_ttft) : end;
    waiting.push({deadline, *whole});
  }
  run_until(end);
  return filled;
}

}  // namespace longhaul::prefill
