#include "prefill/inference_controller.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

/// Of two refusals the one that came further.
void keep_furthest(const Decision& refusal, std::optional<Decision>& kept) {
  if (!kept || *refusal.refused > *kept->refused) kept = refusal;
}

int decode_ranks_of(const Scenario& scenario, DatacenterId datacenter) {
  int ranks = 0;
  for (const ServiceRanks& service : scenario.services)
    if (service.role == RankRole::decode && service.datacenter == datacenter)
      ranks += service.count;
  return ranks;
}

/// One for each model, of its own bytes; empty: none keeps a block.
std::vector<PrefixCache> prefix_caches(const std::vector<Served>& served) {
  std::vector<PrefixCache> caches;
  std::int64_t all = 0;
  for (const Served& each : served) {
    std::int64_t blocks = 0;
    if (each.model.prefix_cache > Bytes{})
      blocks = each.model.prefix_cache.count() /
               each.model.dimensions->kv(PrefixCache::kBlockTokens).count();
    caches.emplace_back(blocks);
    all += blocks;
  }
  if (all == 0) caches.clear();
  return caches;
}

}  // namespace

InferenceController::InferenceController(std::vector<ServingSite> sites,
                                         const scenario::RegionTable& regions, Routing routing)
    : sites_{std::move(sites)}, regions_{regions}, routing_{routing} {}

Duration InferenceController::round_trip(const Request& request, const ServingSite& site) const {
  if (request.region.empty() || site.region.empty() || request.region == site.region) return {};
  const scenario::RegionPair* const pair = regions_.find(request.region, site.region);
  if (pair == nullptr)
    fail(
        "request {}: the round trip from {} to {} was not measured ({}). Give a table with it "
        "(--regions, or regions of [wan]).",
        request.id, request.region, site.region, regions_.source());
  return pair->round_trip;
}

Decision InferenceController::of_least_ttft(const Request& request) {
  std::optional<std::pair<Duration, std::int32_t>> best;  // time to first token, pipeline
  std::optional<Decision> refusal;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const Decision& decision =
        sites_[i].controller.predict(request, round_trip(request, sites_[i]));
    if (decision.refused) {
      keep_furthest(decision, refusal);
      continue;
    }
    const std::pair key{decision.ttft(), decision.pipeline};
    if (best && key >= *best) continue;
    best = key;
    chosen = i;
  }
  if (!best) return std::move(*refusal);
  return sites_[chosen].controller.keep_predicted(request);
}

Decision InferenceController::of_nearest(const Request& request) {
  std::vector<std::pair<Duration, std::size_t>> order;
  for (std::size_t i = 0; i < sites_.size(); ++i)
    order.emplace_back(round_trip(request, sites_[i]), i);
  std::ranges::sort(order);
  std::optional<Decision> refusal;
  for (const auto& [network, i] : order) {
    Decision decision = sites_[i].controller.decide(request, network);
    if (!decision.refused) return decision;
    keep_furthest(decision, refusal);
  }
  return std::move(*refusal);
}

Decision InferenceController::decide(const Request& request) {
  if (sites_.size() == 1)
    return sites_.front().controller.decide(request, round_trip(request, sites_.front()));
  return routing_ == Routing::ttft ? of_least_ttft(request) : of_nearest(request);
}

std::vector<Decision> place_open_loop(InferenceController& controller,
                                      const std::vector<Request>& requests) {
  std::vector<Decision> decisions;
  decisions.reserve(requests.size());
  for (const Request& request : requests) decisions.push_back(controller.decide(request));
  return decisions;
}

std::vector<ServingSite> serving_sites(const Scenario& scenario, const std::vector<Served>& all,
                                       const IterationBubbles& iteration, PlacementPolicy policy,
                                       FillRange range, const ControllerMeans& means) {
  std::vector<ServingSite> sites;
  for (std::size_t i = 0; i < std::max<std::size_t>(1, scenario.datacenters.size()); ++i) {
    std::vector<Served> own = all;
    bool serves = false, decodes = false;
    for (Served& each : own) {
      std::erase_if(each.serving.pipelines, [&](const Pipeline& pipeline) {
        return scenario.is_placed() &&
               index(scenario.datacenter_of(Rank{pipeline.ranks.front()})) != i;
      });
      serves = serves || !each.serving.pipelines.empty();
      decodes = decodes || (each.model.decode && !each.serving.pipelines.empty());
    }
    if (!serves) continue;
    ControllerMeans site = means;
    site.datacenter = static_cast<std::int32_t>(i);
    if (decodes) {
      site.decode_ranks = decode_ranks_of(scenario, DatacenterId{static_cast<int>(i)});
      if (site.decode_ranks == 0)
        fail(
            "prefill.decode: datacenter {} serves and has no decode rank (keys and values stay in "
            "their datacenter). Add [[service]] with role = \"decode\" and datacenter = \"{}\".",
            scenario.datacenters[i].name, scenario.datacenters[i].name);
    }
    site.caches = prefix_caches(own);
    const bool named = i < scenario.datacenters.size();
    sites.push_back({named ? scenario.datacenters[i].name : std::string{},
                     named ? scenario.datacenters[i].region : std::string{},
                     Controller{iteration, std::move(own), policy, range, std::move(site)}});
  }
  if (sites.empty())  // nothing serves: one controller says so to each request
    sites.push_back({{}, {}, Controller{iteration, all, policy, range, means}});
  return sites;
}

}  // namespace longhaul::prefill
