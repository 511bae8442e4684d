#include "planner/sites/break_even.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

/// The scenario with GPUs in two datacenters alone.
Scenario only(const Scenario& scenario, DatacenterId a, DatacenterId b) {
  Scenario two = scenario;
  for (std::size_t d = 0; d < two.datacenters.size(); ++d) {
    if (d != index(a) && d != index(b)) two.datacenters[d].gpus = 0;
  }
  return two;
}

void require_joined(const Scenario& scenario, DatacenterId a, DatacenterId b) {
  if (scenario.link(a, b) != nullptr && scenario.link(b, a) != nullptr) return;
  const std::string& x = scenario.datacenters[index(a)].name;
  const std::string& y = scenario.datacenters[index(b)].name;
  fail(
      "there is no link between {} and {} (its bandwidth is asked for). Add [[link]] between = "
      "[\"{}\", \"{}\"].",
      x, y, x, y);
}

class Bisection {
public:
  Bisection(const Scenario& scenario, DatacenterId a, DatacenterId b,
            const BreakEvenOptions& options)
      : scenario_{only(scenario, a, b)}, a_{a}, b_{b}, options_{options} {
    require_joined(scenario, a, b);
    one_ = std::max(alone(a), alone(b));
  }

  BreakEvenPoint at(Duration latency) {
    BreakEvenPoint point{latency, BreakEven::never, std::nullopt, one_, 0, 0};
    double low = options_.lowest.bits_per_second();
    double high = options_.highest.bits_per_second();
    if (beats(point, Bandwidth{low})) return point.verdict = BreakEven::always, point;
    if (!beats(point, Bandwidth::unlimited())) return point;
    if (!beats(point, Bandwidth{high})) low = high, high = 1e3 * high;
    while (high > low * (1 + options_.tolerance)) {
      const double middle = std::sqrt(low * high);
      (beats(point, Bandwidth{middle}) ? high : low) = middle;
    }
    static_cast<void>(beats(point, Bandwidth{high}));
    point.verdict = BreakEven::found;
    point.bandwidth = Bandwidth{high};
    return point;
  }

private:
  /// Iterations a second of the best plan in the one site; 0 where it holds none.
  double alone(DatacenterId site) {
    const Scenario one = only(scenario_, site, site);
    const GpuInventory inventory{one};
    Algorithm1Options plan = options_.plan;
    plan.pipelines = pipelines();
    if (inventory.most_cells(*plan.pipelines) == 0) return 0;
    CellTimes cells{inventory, options_.model, options_.threads};
    const SitePlans plans = algorithm1(inventory, plan, cells);
    const SitePlan* const best = best_plan(plans.plans, SiteObjective::throughput);
    return best == nullptr ? 0 : best->figures.iterations_per_second;
  }

  /// C: one and two sites are compared with the same, that of the scenario as it is.
  int pipelines() const {
    if (options_.plan.pipelines) return *options_.plan.pipelines;
    return cell_size(GpuInventory{scenario_}, std::array{a_, b_});
  }

  bool beats(BreakEvenPoint& point, Bandwidth bandwidth) {
    Scenario linked = scenario_;
    for (Link& link : linked.links) {
      if (!((link.from == a_ && link.to == b_) || (link.from == b_ && link.to == a_))) continue;
      link.latency = point.latency;
      link.bandwidth = bandwidth;
    }
    const GpuInventory inventory{linked};
    Algorithm1Options plan = options_.plan;
    plan.pipelines = pipelines();
    CellTimes cells{inventory, options_.model, options_.threads};
    SitePlans plans = algorithm1(inventory, plan, cells);
    std::erase_if(plans.plans,
                  [](const SitePlan& each) { return each.layout.placement.size() < 2; });
    const SitePlan* const best = best_plan(plans.plans, SiteObjective::throughput);
    point.two = best == nullptr ? 0 : best->figures.iterations_per_second;
    point.cells = best == nullptr ? 0 : best->layout.cells;
    return point.two > one_;
  }

  Scenario scenario_;
  DatacenterId a_, b_;
  const BreakEvenOptions& options_;
  double one_ = 0;
};

}  // namespace

std::vector<BreakEvenPoint> break_even(const Scenario& scenario, DatacenterId a, DatacenterId b,
                                       std::span<const Duration> latencies,
                                       const BreakEvenOptions& options) {
  Bisection bisection{scenario, a, b, options};
  std::vector<BreakEvenPoint> points;
  for (const Duration latency : latencies) points.push_back(bisection.at(latency));
  return points;
}

}  // namespace longhaul::planner
