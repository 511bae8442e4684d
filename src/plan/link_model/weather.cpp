#include "plan/link_model/weather.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "plan/link_model/link_timeline.hpp"
#include "plan/lowering/collectives.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::plan {
namespace {

constexpr std::uint64_t kLossStream = 0x6c6f7373;  // apart from other uses of run.seed

/// The smallest rate of what a message holds beside the link itself.
Bandwidth others_of(const schedule::NetworkRoute& route) {
  Bandwidth rate;
  for (const schedule::RouteSegment& segment : route.segments) {
    if (segment.resource.kind != ResourceKind::link &&
        segment.resource.kind != ResourceKind::shared_link)
      rate = std::min(rate, segment.rate);
  }
  return rate;
}

}  // namespace

bool Weather::Varying::moves() const {
  return link->weather.trace != nullptr || !link->weather.outages.empty();
}

/// Finds out which lanes and collectives go over which links with weather.
class Weather::Setup {
public:
  Setup(Weather& weather, const Scenario& scenario)
      : weather_{weather}, scenario_{scenario}, routes_{scenario} {}

  void collect_links() {
    const std::uint64_t losses = derived_seed(scenario_.run.seed, kLossStream);
    for (const Link& link : scenario_.links) {
      place_.push_back(kCalm);
      if (!link.weather.any() && !link.jitter.any()) continue;
      place_.back() = static_cast<std::uint32_t>(weather_.links_.size());
      std::optional<LinkJitter> jitter;
      if (link.jitter.any()) jitter.emplace(link, scenario_.run.seed);
      weather_.links_.push_back({&link, LinkTimeline{link}, jitter,
                                 derived_seed(losses, index(link.from), index(link.to))});
    }
  }

  [[nodiscard]] Hop hop(const Lane& lane) const {
    if (lane.kind == OpKind::send) return hop(lane.rank, lane.peer);
    if (lane.kind == OpKind::recv) return hop(lane.peer, lane.rank);
    return {};
  }

  [[nodiscard]] Ring ring(const std::vector<OpId>& members) const {
    Ring ring;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Rank from = weather_.plan_.rank_of(members[i]);
      const Rank to = weather_.plan_.rank_of(members[(i + 1) % members.size()]);
      const Hop one = hop(from, to);
      if (one.link != kCalm && weather_.links_[one.link].moves()) {
        ring.hops.push_back(one);
        continue;
      }
      const schedule::NetworkRoute route = routes_.between(from, to);
      ring.others.rate = std::min(ring.others.rate, route.rate);
      ring.others.latency = std::max(ring.others.latency, route.latency);
    }
    return ring;
  }

private:
  [[nodiscard]] Hop hop(Rank from, Rank to) const {
    const Link* link = scenario_.link(scenario_.datacenter_of(from), scenario_.datacenter_of(to));
    if (link == nullptr) return {};
    const std::uint32_t place = place_[at(link - scenario_.links.data())];
    if (place == kCalm) return {};
    return {place, others_of(routes_.between(from, to))};
  }

  Weather& weather_;
  const Scenario& scenario_;
  schedule::NetworkRoutes routes_;
  std::vector<std::uint32_t> place_;  ///< in links_, by link of the scenario
};

Weather::Weather(const Plan& plan, const Scenario& scenario)
    : plan_{plan}, sync_{scenario.parallel.gradient_sync} {
  Setup setup{*this, scenario};
  setup.collect_links();
  if (links_.empty()) return;
  for (const Lane& lane : plan.lanes) {
    hop_of_lane_.push_back(setup.hop(lane));
    if (hop_of_lane_.back().link != kCalm) calm_ = false;
  }
  for (const std::vector<OpId>& members : plan.collectives) {
    rings_.push_back(setup.ring(members));
    if (!rings_.back().hops.empty()) calm_ = false;
  }
}

JitterFactors Weather::jitter_of(const Varying& link, OpId send, std::uint64_t iteration) const {
  if (!link.jitter) return {};
  const Op& op = plan_.op(send);
  return link.jitter->of(iteration, plan_.rank_of(send), op.peer, op.block());
}

bool Weather::is_lost(const Varying& link, OpId send, std::uint64_t iteration) const {
  const Loss& loss = link.link->weather.loss;
  if (loss.probability <= 0) return false;
  const Op& op = plan_.op(send);
  const std::uint64_t way = derived_seed(derived_seed(link.loss_seed, iteration + 1),
                                         index(plan_.rank_of(send)) + 1, index(op.peer));
  const auto block = 2 * static_cast<std::uint64_t>(op.chunk) +
                     static_cast<std::uint64_t>(is_backward(op.block_kind));
  const std::uint64_t piece = std::uint64_t{op.owner} << 8 | op.piece;
  Random random{derived_seed(derived_seed(way, block + 1, piece),
                             static_cast<std::uint64_t>(op.microbatch) + 1)};
  return random.uniform() < loss.probability;
}

Duration Weather::hold(OpId send, std::uint64_t iteration, Duration begin) const {
  return hold(send, iteration, begin, plan_.op(send).duration, plan_.op(send).size);
}

Duration Weather::hold(OpId send, std::uint64_t iteration, Duration begin, Duration alone,
                       Bytes size) const {
  const Op& op = plan_.op(send);
  if (calm_ || hop_of_lane_[index(op.lane)].link == kCalm) return alone;
  const Hop& hop = hop_of_lane_[index(op.lane)];
  const Varying& link = links_[hop.link];
  const double factor = jitter_of(link, send, iteration).transfer;
  const auto jittered = [&](Duration transfer) {
    return link.jitter ? scaled(transfer, factor) : transfer;
  };
  if (!link.moves()) return jittered(alone);
  return time_of_work(begin, [&](Duration time) {
    const LinkTimeline::Stretch now = link.timeline.at(time);
    return Pace{jittered(size / std::min(now.bandwidth, hop.others)), now.until, now.out};
  });
}

Duration Weather::latency(OpId recv, std::uint64_t iteration, Duration end) const {
  const Op& op = plan_.op(recv);
  if (calm_ || hop_of_lane_[index(op.lane)].link == kCalm) return op.duration;
  const Varying& link = links_[hop_of_lane_[index(op.lane)].link];
  const OpId send{op.match};
  const Duration given = link.timeline.latency(end);
  const Duration latency =
      link.jitter ? scaled(given, jitter_of(link, send, iteration).latency) : given;
  if (!is_lost(link, send, iteration)) return latency;
  return latency + link.link->weather.loss.delay.value_or(2 * given);
}

Duration Weather::collective(OpId member, std::uint64_t /*iteration*/, Duration begin) const {
  const Op& op = plan_.op(member);
  if (calm_ || rings_[op.match].hops.empty() || !is_estimate(sync_)) return op.duration;
  const Ring& ring = rings_[op.match];
  const std::size_t members = plan_.collectives[op.match].size();
  return time_of_work(begin, [&](Duration time) {
    Pace pace{{}, Duration::max(), false};
    schedule::RingHop slowest = ring.others;
    for (const Hop& hop : ring.hops) {
      const LinkTimeline::Stretch now = links_[hop.link].timeline.at(time);
      slowest.rate = std::min({slowest.rate, now.bandwidth, hop.others});
      slowest.latency = std::max(slowest.latency, now.latency);
      pace.until = std::min(pace.until, now.until);
      pace.stopped = pace.stopped || now.out;
    }
    pace.whole = estimated_time(op.size, members, slowest, sync_);
    return pace;
  });
}

Duration Weather::outage_left(OpId id, Duration begin) const {
  if (calm_) return {};
  const Op& op = plan_.op(id);
  std::vector<Hop> hops;
  if (op.kind == OpKind::collective)
    hops = rings_[op.match].hops;
  else if (hop_of_lane_[index(op.lane)].link != kCalm)
    hops = {hop_of_lane_[index(op.lane)]};
  Duration time = begin;
  for (bool out = true; out;) {
    out = false;
    for (const Hop& hop : hops) {
      const LinkTimeline::Stretch now = links_[hop.link].timeline.at(time);
      if (!now.out) continue;
      out = true;
      time = now.until;
    }
  }
  return time - begin;
}

}  // namespace longhaul::plan
