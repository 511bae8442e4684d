#pragma once

#include <string>
#include <vector>

#include "base/listed_enum.hpp"
#include "prefill/placement.hpp"
#include "scenario/regions.hpp"

namespace longhaul::prefill {

/// How the inference controller chooses a request's datacenter: the least predicted time to first
/// token, with the round trip in it, or the nearest to its region by the table.
#define LONGHAUL_ROUTINGS(X) X(ttft, "ttft") X(nearest, "nearest")
LONGHAUL_LISTED_ENUM(Routing, LONGHAUL_ROUTINGS);

/// A datacenter that serves.
struct ServingSite {
  std::string name, region;
  Controller controller;
};

/// The inference controller: it takes requests in the order of their arrival, chooses the
/// datacenter, and hands each to that datacenter's controller. A no goes to the next: where all say
/// no, the reason is the last in the order of reasons that one of them gave. A request or a
/// datacenter without a region is at hand: no time on the way.
class InferenceController {
public:
  InferenceController(std::vector<ServingSite> sites, const scenario::RegionTable& regions,
                      Routing routing);
  /// Throws Error where the round trip from the request's region to a site was not measured.
  [[nodiscard]] Decision decide(const Request& request);
  [[nodiscard]] const std::vector<ServingSite>& sites() const { return sites_; }

private:
  [[nodiscard]] Duration round_trip(const Request& request, const ServingSite& site) const;
  [[nodiscard]] Decision of_least_ttft(const Request& request);
  [[nodiscard]] Decision of_nearest(const Request& request);

  std::vector<ServingSite> sites_;
  const scenario::RegionTable& regions_;
  Routing routing_;
};

[[nodiscard]] std::vector<Decision> place_open_loop(InferenceController& controller,
                                                    const std::vector<Request>& requests);

/// One site for each datacenter that serves, with decode ranks of its own ([[service]]), memory and
/// interfaces. `all`: served_models(). Throws Error where a model has a `decode` and a datacenter
/// that serves no decode rank. `means`: of all datacenters together; its decode ranks are ignored.
[[nodiscard]] std::vector<ServingSite> serving_sites(const Scenario& scenario,
                                                     const std::vector<Served>& all,
                                                     const IterationBubbles& iteration,
                                                     PlacementPolicy policy, FillRange range,
                                                     const ControllerMeans& means);

}  // namespace longhaul::prefill
