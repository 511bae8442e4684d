#include "planner/plan_memory.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include <sys/resource.h>

#include "base/error.hpp"
#include "base/text_file.hpp"
#include "base/unit_text.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::planner {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// The number that a text begins with; kNoLimit where it begins with none ("max", no file).
std::int64_t limit_in(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} ? number : kNoLimit;
}

std::int64_t limit_of_control_group() {
  std::string own = value_in_file("/proc/self/cgroup", "0:");  // ":/user.slice" of "0::/user.slice"
  own = "/sys/fs/cgroup" + (own.empty() ? own : own.substr(1));
  std::int64_t least = kNoLimit;
  for (const std::string& folder : {own, std::string{"/sys/fs/cgroup"}})
    least = std::min(least, limit_in(value_in_file(folder + "/memory.max", "")));
  return least;
}

}  // namespace

Bytes least_plan_memory(const Scenario& scenario) {
  const Parallel& parallel = scenario.parallel;
  const std::int64_t microbatches =
      std::int64_t{parallel.tensor} * parallel.replicas * parallel.microbatches;
  const std::int64_t blocks = 2 * microbatches * parallel.stages;  // F and B
  const std::int64_t sides = 4 * microbatches * (parallel.stages - 1);
  const std::int64_t ops = blocks + sides;
  return Bytes{ops * static_cast<std::int64_t>(sizeof(Op) + sizeof(OpTime) + sizeof(TimelineRow)) +
               blocks * static_cast<std::int64_t>(sizeof(Block))};
}

Bytes free_memory() {
  std::int64_t least = limit_of_control_group();
  // "MemAvailable:   16307604 kB"
  if (const auto kib = limit_in(value_in_file("/proc/meminfo", "MemAvailable")); kib != kNoLimit)
    least = std::min(least, kib * 1024);
  rlimit own{};
  if (getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY)
    least = std::min(least, static_cast<std::int64_t>(own.rlim_cur));
  return Bytes{least};
}

void require_plan_memory(const Scenario& scenario, Bytes available) {
  const Bytes needed = least_plan_memory(scenario);
  if (needed <= available) return;
  fail(
      "parallel.microbatches = {} on {} ranks takes at least {} of memory, and {} are free here (a "
      "plan has all blocks and messages of an iteration). Use fewer microbatches.",
      scenario.parallel.microbatches, scenario.training_ranks(), to_text(needed),
      to_text(available));
}

}  // namespace longhaul::planner
