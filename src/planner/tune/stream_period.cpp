#include "planner/tune/stream_period.hpp"

#include <algorithm>
#include <vector>

#include "base/index.hpp"

namespace longhaul::planner {

Duration first_block(const Plan& plan, const OpResults& results) {
  Duration first = Duration::max();
  for (const Lane& lane : plan.lanes)
    if (lane.name == "compute" && lane.count > 0)
      first = std::min(first, results.times[index(lane.first)].start);
  return first;
}

std::optional<Duration> period_of(std::span<const Duration> iteration_starts) {
  const auto iterations = std::ssize(iteration_starts);
  if (iterations < 2) return std::nullopt;
  const auto from = std::min(iterations / 2, iterations - 2);
  return (iteration_starts.back() - iteration_starts[to_size(from)]) / (iterations - 1 - from);
}

double bytes_between_datacenters(const Plan& plan) {
  double bytes = 0;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].kind == OpKind::send && plan.crosses_datacenters(OpId{i}))
      bytes += static_cast<double>(plan.ops[i].size.count());
  return bytes;
}

Duration stream_period(const Plan& plan, int iterations) {
  std::vector<Duration> starts;
  sim::simulate_stream(plan, {iterations, {}}, [&](const sim::StreamedIteration& done) {
    starts.push_back(first_block(plan, done.results));
  });
  return *period_of(starts);
}

}  // namespace longhaul::planner
