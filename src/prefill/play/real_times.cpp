#include "prefill/play/real_times.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "base/random.hpp"

namespace longhaul::prefill {

RealTimes::RealTimes(const std::vector<Request>& requests, Load load, std::uint64_t seed)
    : load_{load}, seed_{seed} {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].takes) continue;
    // Those of a backlog are numbered anew, whatever they were in a file of which it is a window.
    const std::size_t place = load == Load::backlog ? i : to_size(requests[i].id);
    takes_.resize(std::max({takes_.size(), requests.size(), place + 1}));
    takes_[place] = *requests[i].takes;
  }
}

Duration RealTimes::of(std::int64_t request, Duration estimate, double noise) const {
  const std::size_t place = load_ == Load::backlog && !takes_.empty()
                                ? to_size(request) % takes_.size()
                                : to_size(request);
  if (place < takes_.size() && takes_[place] > Duration{}) return takes_[place];
  if (noise == 0) return estimate;
  Random random{derived_seed(seed_, 0x70726566, static_cast<std::uint64_t>(request))};
  return scaled(estimate, std::max(0.1, 1.0 + noise * random.normal()));
}

std::vector<std::string> varying_times(const Scenario& scenario,
                                       const std::vector<Request>& requests, bool calm) {
  std::vector<std::string> found;
  if (scenario.run.noise > 0) found.emplace_back("run.noise");
  if (!scenario.run.stragglers.empty()) found.emplace_back("run.stragglers");
  if (!calm) found.emplace_back("weather of links");
  if (std::ranges::any_of(scenario.served, [](const ServedModel& each) { return each.noise > 0; }))
    found.emplace_back("prefill.noise");
  if (std::ranges::any_of(requests, [](const Request& each) { return each.takes.has_value(); }))
    found.emplace_back("takes_ns");
  return found;
}

}  // namespace longhaul::prefill
