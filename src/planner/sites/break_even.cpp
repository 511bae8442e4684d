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
    set_sizes();
    one_ = std::max(alone(a), alone(b));
  }

  BreakEvenPoint at(Duration latency) {
    BreakEvenPoint point{latency, BreakEven::never, std::nullopt, one_, 0, 0};
    double low = options_.lowest.bits_per_second();
    double high = options_.highest.bits_per_second();
    if (beats(point, Bandwidth{low})) return point.verdict = BreakEven::always, point;
    if (!beats(point, Bandwidth::unlimited())) {
      if (point.two == 0) point.verdict = BreakEven::no_plan, point.reason = why_no_plan();
      return point;
    }
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
  /// One and two sites take the same values of C: those of the link as it is, of which both sites
  /// together hold a cell.
  void set_sizes() {
    const GpuInventory inventory{scenario_};
    sizes_ = options_.plan.pipelines ? std::vector{*options_.plan.pipelines}
                                     : cell_sizes(inventory, std::array{a_, b_});
    require_none(why_no_cell(inventory, sizes_.back()));
  }

  /// The best plan of all values of C, of those that use at least so many sites.
  std::optional<SitePlan> best_of(const GpuInventory& inventory, std::size_t sites) {
    CellTimes cells{inventory, options_.model, options_.threads};
    std::vector<SitePlan> all;
    for (const int pipelines : sizes_) {
      Algorithm1Options plan = options_.plan;
      plan.pipelines = pipelines;
      const Result<SitePlans> plans = try_algorithm1(inventory, plan, cells);
      if (plans) all.insert(all.end(), plans->plans.begin(), plans->plans.end());
    }
    std::erase_if(all, [&](const SitePlan& plan) { return plan.layout.placement.size() < sites; });
    const SitePlan* const best = best_plan(all, SiteObjective::throughput);
    return best == nullptr ? std::nullopt : std::optional{*best};
  }

  /// Iterations a second of the best plan in the one site; 0 where it holds none.
  double alone(DatacenterId site) {
    const Scenario one = only(scenario_, site, site);
    const GpuInventory inventory{one};
    const auto best = best_of(inventory, 1);
    return best ? best->figures.iterations_per_second : 0;
  }

  [[nodiscard]] std::string why_no_plan() {
    const GpuInventory inventory{scenario_};
    CellTimes cells{inventory, options_.model, options_.threads};
    Algorithm1Options plan = options_.plan;
    plan.pipelines = sizes_.back();
    const Result<SitePlans> plans = try_algorithm1(inventory, plan, cells);
    if (!plans) return plans.refusal().reason;
    const auto without = std::ranges::find_if_not(plans->plans, &SitePlan::feasible);
    if (without != plans->plans.end()) return without->infeasible;
    return "for every D the first of them has GPUs enough";
  }

  bool beats(BreakEvenPoint& point, Bandwidth bandwidth) {
    Scenario linked = scenario_;
    for (Link& link : linked.links) {
      if (!((link.from == a_ && link.to == b_) || (link.from == b_ && link.to == a_))) continue;
      link.latency = point.latency;
      link.bandwidth = bandwidth;
    }
    const GpuInventory inventory{linked};
    const auto best = best_of(inventory, 2);
    point.two = best ? best->figures.iterations_per_second : 0;
    point.cells = best ? best->layout.cells : 0;
    return point.two > one_;
  }

  Scenario scenario_;
  DatacenterId a_, b_;
  const BreakEvenOptions& options_;
  std::vector<int> sizes_;  ///< values of C, the smallest last
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
