#include "harness/profile/link_profile.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "base/unit_text.hpp"

namespace longhaul::harness {
namespace {

/// The value that a share of `share` of the values does not exceed; reorders them.
Duration quantile(std::vector<Duration>& values, double share) {
  LONGHAUL_ASSERT(!values.empty(), "a quantile of nothing");
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

Bytes bytes_sent(Bytes nominal, const ProfileSource& source) {
  return source.emulation == engine::Emulation::on ? nominal : std::min(nominal, source.payload);
}

/// Times of the messages of one link and one size.
struct MessageTimes {
  std::vector<Duration> whole;  ///< from the start of the send to the arrival
  std::vector<Duration> transfer;
};
using LinkTimes = std::map<Bytes, MessageTimes>;

void add_message(LinkTimes& link, const Plan& plan, const OpTimes& times, OpId send,
                 const ProfileSource& source) {
  const OpTime& sent = times[index(send)];
  const OpTime& received = times[plan.op(send).match];
  MessageTimes& of_size = link[plan.op(send).size];
  of_size.whole.push_back(received.end - sent.start);
  of_size.transfer.push_back(source.emulation == engine::Emulation::on
                                 ? sent.end - sent.start
                                 : received.end - received.start);
}

LinkEstimate estimate(LinkTimes& times, const Link& link, const ProfileSource& source) {
  LinkEstimate found{link.from, link.to, 0, {}, {}, {}};
  std::vector<Duration> latencies;
  for (auto& [size, of_size] : times) {  // the largest last
    found.transfer = quantile(of_size.transfer, 0.5);
    if (found.transfer > Duration::zero())
      found.rate = Bandwidth{static_cast<double>(bytes_sent(size, source).count()) * 8e9 /
                             static_cast<double>(found.transfer.count())};
    for (const Duration whole : of_size.whole)
      latencies.push_back(std::max(Duration::zero(), whole - found.transfer));
  }
  found.messages = static_cast<int>(latencies.size());
  found.latency = quantile(latencies, 0.25);
  return found;
}

void profile_links(Profile& profile, const Plan& plan, const OpTimes& times,
                   const Scenario& scenario, const ProfileSource& source) {
  std::map<const Link*, LinkTimes> of_link;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (plan.op(id).kind != OpKind::send || is_step(plan.op(id))) continue;
    const Link* link = scenario.link(scenario.datacenter_of(plan.rank_of(id)),
                                     scenario.datacenter_of(plan.op(id).peer));
    if (link != nullptr) add_message(of_link[link], plan, times, id, source);
  }
  for (const Link& link : scenario.links) {
    const auto found = of_link.find(&link);
    if (found != of_link.end()) profile.links.push_back(estimate(found->second, link, source));
  }
}

/// A median of fewer does not keep out a block that the host delayed.
constexpr int kLeastBlocks = 3;

void profile_blocks(Profile& profile, const Plan& plan, const OpTimes& times) {
  struct Key {
    int device, kind, chunk;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::vector<Duration>> samples;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = plan.op(id);
    if (op.kind != OpKind::compute) continue;
    const int device = number(plan.ranks[index(plan.rank_of(id))].device);
    samples[{device, static_cast<int>(op.block_kind), op.chunk}].push_back(
        (times[i].end - times[i].start) * op.parts);
  }
  for (auto& kind : profile.blocks) kind.resize(static_cast<std::size_t>(plan.stages));
  const auto least = static_cast<std::size_t>(std::min(kLeastBlocks, plan.microbatches));
  std::map<std::pair<int, int>, std::vector<Duration>> of_chunks;  ///< by (device, kind)
  for (auto& [key, values] : samples)
    if (values.size() >= least) of_chunks[{key.device, key.kind}].push_back(quantile(values, 0.5));
  for (const auto& [key, times_of_chunks] : of_chunks) {
    const auto& [device, kind] = key;
    const auto shown = static_cast<std::int64_t>(times_of_chunks.size());
    // Every chunk has forwards; the chunks of a device are equal.
    const std::int64_t chunks = std::ssize(of_chunks.at({device, static_cast<int>(BlockKind::F)}));
    profile.blocks[static_cast<std::size_t>(kind)][static_cast<std::size_t>(device)] =
        std::accumulate(times_of_chunks.begin(), times_of_chunks.end(), Duration::zero()) * chunks /
        shown;
  }
}

constexpr std::array kTimes{&Costs::forward, &Costs::backward, &Costs::dgrad, &Costs::wgrad,
                            &Costs::recompute};
constexpr std::array kProfiledKinds{"F", "B", "D", "W", "R"};

/// Measured over believed work of the kinds that the profile shows of a device.
double slowness_of(const Profile& profile, const Costs& believed, std::size_t device) {
  double measured = 0;
  double expected = 0;
  for (std::size_t kind = 0; kind < kTimes.size(); ++kind) {
    if (!profile.blocks[kind][device]) continue;
    measured += static_cast<double>(profile.blocks[kind][device]->count());
    expected += static_cast<double>((believed.*kTimes[kind])[device].count());
  }
  return expected > 0 ? measured / expected : 1.0;
}

double ratio(Duration measured, Duration believed, Duration unit) {
  const auto difference = std::abs(static_cast<double>((measured - believed).count()));
  return difference == 0 ? 0 : difference / std::max(1.0, static_cast<double>(unit.count()));
}

void raise(Deviation& largest, double found, const std::string& where, Duration measured,
           Duration believed) {
  if (found <= largest.ratio) return;
  largest = {found, fmt::format("{} {}, believed {}", where, to_text(measured), to_text(believed))};
}

Bytes largest_message(const Scenario& scenario) {
  return *std::ranges::max_element(scenario.costs.message);
}

}  // namespace

Profile profile_of(const Plan& plan, const OpTimes& times, const Scenario& scenario,
                   const ProfileSource& source) {
  LONGHAUL_ASSERT(times.size() == plan.ops.size(), "{} times of {} ops", times.size(),
                  plan.ops.size());
  Profile profile;
  profile_links(profile, plan, times, scenario, source);
  profile_blocks(profile, plan, times);
  return profile;
}

Scenario with_profile(const Scenario& believed, const Profile& profile) {
  Scenario changed = believed;
  for (const LinkEstimate& estimate : profile.links) {
    for (Link& link : changed.links) {
      if (link.from != estimate.from || link.to != estimate.to) continue;
      link.latency = estimate.latency;
      link.bandwidth = estimate.rate;
    }
  }
  for (std::size_t device = 0; device < believed.costs.forward.size(); ++device) {
    const double slowness = slowness_of(profile, believed.costs, device);
    for (std::size_t kind = 0; kind < kTimes.size(); ++kind) {
      Duration& time = (changed.costs.*kTimes[kind])[device];
      time = profile.blocks[kind][device].value_or(scaled(time, slowness));
    }
  }
  return changed;
}

Deviation largest_deviation(const Profile& profile, const Scenario& believed) {
  Deviation largest;
  for (const LinkEstimate& estimate : profile.links) {
    const Link* link = believed.link(estimate.from, estimate.to);
    if (link == nullptr) continue;
    const Bytes size = largest_message(believed);
    const Duration before = size / link->bandwidth;
    const Duration after = size / estimate.rate;
    const Duration unit = std::max(link->latency + before, believed.largest_forward());
    const std::string name =
        fmt::format("link {}>{}: ", believed.datacenters[index(estimate.from)].name,
                    believed.datacenters[index(estimate.to)].name);
    raise(largest, ratio(estimate.latency, link->latency, unit), name + "latency", estimate.latency,
          link->latency);
    raise(largest, ratio(after, before, unit), name + "transfer", after, before);
  }
  for (std::size_t kind = 0; kind < kTimes.size(); ++kind) {
    for (std::size_t device = 0; device < profile.blocks[kind].size(); ++device) {
      const auto measured = profile.blocks[kind][device];
      if (!measured) continue;
      const Duration expected = (believed.costs.*kTimes[kind])[device];
      raise(largest, ratio(*measured, expected, expected),
            fmt::format("{} on device {}:", kProfiledKinds[kind], device), *measured, expected);
    }
  }
  return largest;
}

}  // namespace longhaul::harness
