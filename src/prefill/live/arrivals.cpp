#include "prefill/live/arrivals.hpp"

namespace longhaul::prefill {

std::string gone_controller(const std::string& datacenter) {
  return datacenter.empty() ? "the controller is gone"
                            : "the controller of " + datacenter + " is gone";
}

void TraceArrivals::collect(Duration now, std::vector<Request>& arrived,
                            std::vector<std::int64_t>& /*cancelled*/) {
  while (next_ < requests_.size() && requests_[next_].arrival <= now)
    arrived.push_back(requests_[next_++]);
}

Duration TraceArrivals::next_look(Duration /*now*/) const {
  return next_ < requests_.size() ? requests_[next_].arrival : Duration::max();
}

std::vector<Request> TraceArrivals::rest() {
  std::vector<Request> rest(requests_.begin() + static_cast<std::ptrdiff_t>(next_),
                            requests_.end());
  next_ = requests_.size();
  return rest;
}

std::vector<std::int64_t> TraceArrivals::offered() const {
  std::vector<std::int64_t> ids;
  for (const Request& each : requests_) ids.push_back(each.id);
  return ids;
}

}  // namespace longhaul::prefill
