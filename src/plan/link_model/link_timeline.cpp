#include "plan/link_model/link_timeline.hpp"

#include <algorithm>

namespace longhaul::plan {

LinkTimeline::LinkTimeline(const Link& link)
    : trace_{link.weather.trace},
      repeat_{link.weather.repeat},
      latency_{link.latency},
      bandwidth_{link.bandwidth},
      outages_{link.weather.outages} {}

LinkTimeline::Stretch LinkTimeline::state_at(Duration time) const {
  Stretch stretch{latency_, bandwidth_, false, Duration::max()};
  if (trace_ == nullptr) return stretch;
  const auto& states = trace_->states;
  const Duration round = repeat_ ? time / *repeat_ * *repeat_ : Duration::zero();
  const auto next = std::ranges::upper_bound(states, time - round, {}, &LinkState::at);
  const LinkState& state = *std::prev(next);
  if (trace_->gives_latency) stretch.latency = state.latency;
  if (trace_->gives_bandwidth) stretch.bandwidth = state.bandwidth;
  if (next != states.end()) stretch.until = round + next->at;
  if (repeat_) stretch.until = std::min(stretch.until, round + *repeat_);
  return stretch;
}

LinkTimeline::Stretch LinkTimeline::at(Duration time) const {
  if (time < Duration::zero()) {
    Stretch before = state_at(Duration::zero());
    before.until = Duration::zero();
    return before;
  }
  Stretch stretch = state_at(time);
  const auto next = std::ranges::upper_bound(outages_, time, {}, &Outage::begin);
  if (next != outages_.end()) stretch.until = std::min(stretch.until, next->begin);
  if (next == outages_.begin()) return stretch;
  const Outage& last = *std::prev(next);
  if (time >= last.begin + last.length) return stretch;
  stretch.out = true;
  stretch.until = last.begin + last.length;
  return stretch;
}

Duration LinkTimeline::latency(Duration time) const {
  return state_at(std::max(time, Duration::zero())).latency;
}

}  // namespace longhaul::plan
