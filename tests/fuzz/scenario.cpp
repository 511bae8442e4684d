#include "scenario/scenario.hpp"

#include <string>
#include <vector>

#include "fuzz/refusal.hpp"
#include "fuzz/targets.hpp"
#include "plan/lowering/lower.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"
#include "sim/simulate.hpp"

namespace longhaul::fuzz {
namespace {

constexpr const char* kSource = "input.toml";

std::vector<std::string> overrides_in(std::string_view text) {
  constexpr std::string_view kMark = "#set ";
  constexpr std::size_t kMost = 4;
  std::vector<std::string> overrides;
  while (!text.empty() && overrides.size() < kMost) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(kMark)) overrides.emplace_back(line.substr(kMark.size()));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return overrides;
}

bool is_small(const Scenario& scenario) {
  return scenario.parallel.stages <= 8 && scenario.parallel.microbatches <= 8 &&
         scenario.parallel.replicas <= 3;
}

/// Uses an accepted scenario: makes a schedule, its memory, its plan, its times.
void use(const Scenario& scenario) {
  for (const char* name : {"1f1b", "zbv"}) {
    const Schedule schedule = schedule::generate(name, scenario);
    const auto violation = schedule::first_violation(schedule);
    LONGHAUL_ASSERT(!violation, "{}: {}", name, violation->text);
    static_cast<void>(schedule::device_memory(schedule, scenario));
    const Plan plan = plan::lower(schedule, scenario);
    static_cast<void>(sim::simulate(plan));
    const plan::Weather weather{plan, scenario};
    static_cast<void>(sim::simulate(plan, {&weather, 1, Duration{-1}}));
  }
}

}  // namespace

void scenario(std::string_view bytes) {
  for (const scenario::Placing placing :
       {scenario::Placing::required, scenario::Placing::optional}) {
    Scenario read;
    try {
      read = scenario::parse_scenario(bytes, kSource, overrides_in(bytes), placing);
    } catch (const Error& error) {
      const bool names_override = std::string_view{error.what()}.find("--set") != std::string::npos;
      expect_refusal(error, names_override ? "--set" : kSource);
      continue;
    }
    if (!is_small(read) || !read.is_placed()) continue;
    try {
      use(read);
    } catch (const Error& error) {
      LONGHAUL_ASSERT(error.code() == ExitCode::bad_input, "exit code {} for: {}",
                      static_cast<int>(error.code()), error.what());
    }
  }
}

}  // namespace longhaul::fuzz
