#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/options.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::harness {

/// Estimate from one iteration of the link between two datacenters, in one direction.
struct LinkEstimate {
  DatacenterId from{}, to{};
  int messages = 0;
  Duration latency{};
  Duration transfer{};  ///< of a message of the largest size
  Bandwidth rate;       ///< of what a message really moved; unlimited where that took no time
};

/// Links and blocks as ranks measured them in one iteration (CrossPipe 6.1), as played.
struct Profile {
  std::vector<LinkEstimate> links;  ///< in the order of the scenario's; those that carried messages
  /// Time of one microbatch on each device, all its chunks together (index: BlockKind, device);
  /// nullopt for a kind of which fewer than three blocks ran.
  std::array<std::vector<std::optional<Duration>>, 5> blocks;
};

/// Properties of the played iteration that give the sizes and stamps of its messages their meaning.
struct ProfileSource {
  engine::Emulation emulation = engine::Emulation::on;
  Bytes payload;  ///< cap on the bytes really sent
};

/// Reads a profile off the times of all ranks' ops, on one clock (rank 0's: the ranks of one host
/// share it, others are aligned by clock_sync; an error e of that moves a link's latency by e and
/// takes e from the way back, which the sum that a schedule feels does not notice). `links` are
/// those of `scenario`. A message takes from the start of its send to its arrival. Of that, its
/// transfer is how long the sender held the link or, over the network as it is, header to payload
/// at the receiver, the median of one size; the rest is latency, the lower quartile of all: on a
/// real network messages queue one after the other, which is no latency. Blocks count by the median
/// over microbatches and replicas.
[[nodiscard]] Profile profile_of(const Plan& plan, const OpTimes& times, const Scenario& scenario,
                                 const ProfileSource& source);

/// `believed` with what the profile shows in its place. Kinds of blocks that it does not show are
/// scaled as those that it shows of the same device.
[[nodiscard]] Scenario with_profile(const Scenario& believed, const Profile& profile);

/// Difference of a profile from the values that were believed.
struct Deviation {
  double ratio = 0;  ///< 0.1: 10%
  std::string what;  ///< "link dc0>dc1: latency 76.1 ms, believed 9.5 ms"
};
/// The largest: of a block's time, relative to the time believed; of a link's latency or transfer,
/// relative to the time of a message over it as believed or to the longest forward, whichever is
/// longer (what is short against a block delays none).
[[nodiscard]] Deviation largest_deviation(const Profile& profile, const Scenario& believed);

/// The profile beside what was played (`truth`; nothing: not known) for records, and for people.
[[nodiscard]] nlohmann::ordered_json profile_json(const Profile& profile,
                                                  const std::optional<Profile>& truth,
                                                  const Scenario& scenario);
[[nodiscard]] std::string profile_text(const Profile& profile, const std::optional<Profile>& truth,
                                       const Scenario& scenario);

}  // namespace longhaul::harness
