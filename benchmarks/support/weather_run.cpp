#include "support/weather_run.hpp"

#include <string>

#include "sim/simulate.hpp"

namespace longhaul::bench {

WeatherRun::WeatherRun(const Plan& plan, const Scenario& scenario, Emulation emulation)
    : plan_{plan} {
  if (emulation == Emulation::off) return;
  scenario_ = std::make_unique<const Scenario>(scenario);
  weather_ = std::make_unique<const Weather>(plan_, *scenario_);
  if (weather_->calm()) weather_.reset();
}

OpTimes WeatherRun::predict(int iteration, Duration age) const {
  return simulate(plan_, {weather_.get(), static_cast<std::uint64_t>(iteration), age});
}

TimePoint begin_weather(const Ranks& ranks, const ClockOffset& clock, Duration age) {
  const std::string stamp = ranks.world().broadcast(
      ranks.is_first() ? std::to_string((now() - age).count()) : std::string{});
  return TimePoint{std::stoll(stamp)} - clock.offset;
}

}  // namespace longhaul::bench
