#include "harness/session/link_conditions_run.hpp"

#include <string>

#include "engine/links/link_conditions.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {

LinkConditionsRun::LinkConditionsRun(const Plan& plan, const Scenario& scenario,
                                     engine::Emulation emulation)
    : plan_{plan} {
  if (emulation == engine::Emulation::off) return;
  scenario_ = std::make_unique<const Scenario>(scenario);
  weather_ = std::make_unique<const plan::Weather>(plan_, *scenario_);
  if (weather_->calm()) weather_.reset();
}

OpTimes LinkConditionsRun::predict(int iteration, Duration age) const {
  return sim::simulate(plan_, {weather_.get(), static_cast<std::uint64_t>(iteration), age});
}

Duration LinkConditionsRun::longest_wait(int iteration, TimePoint began, Rank rank) const {
  const Duration age = began == kNever ? engine::kBeforeWeather : now() - began;
  return kAfterYou + engine::longest_wait(plan_, predict(iteration, age), rank);
}

TimePoint begin_weather(const engine::Ranks& ranks, const comm::ClockOffset& clock, Duration age) {
  const std::string stamp = ranks.world().broadcast(
      ranks.is_first() ? std::to_string((now() - age).count()) : std::string{});
  return TimePoint{std::stoll(stamp)} - clock.offset;
}

}  // namespace longhaul::harness
