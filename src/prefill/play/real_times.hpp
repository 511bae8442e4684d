#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prefill/requests.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::prefill {

/// What prefills really take: what a request's line says, or the estimate with noise. By the
/// request's number, so that each rank that plays it draws the same.
class RealTimes {
public:
  /// `requests`: of a backlog the file, whose requests are numbered anew as it goes round.
  enum class Load : std::uint8_t { open_loop, backlog };
  RealTimes(const std::vector<Request>& requests, Load load, std::uint64_t seed);
  /// `noise`: standard deviation over the estimate.
  [[nodiscard]] Duration of(std::int64_t request, Duration estimate, double noise) const;

private:
  std::vector<Duration> takes_;  ///< by number; 0: not said
  Load load_;
  std::uint64_t seed_;
};

/// What of a run makes times other than the plan and the estimates say, in the words of the field
/// that asks for it; empty: nothing. `calm`: links have no weather.
[[nodiscard]] std::vector<std::string> varying_times(const Scenario& scenario,
                                                     const std::vector<Request>& requests,
                                                     bool calm);

}  // namespace longhaul::prefill
