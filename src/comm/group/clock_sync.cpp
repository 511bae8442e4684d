#include "comm/group/clock_sync.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "base/index.hpp"
#include "comm/blocking_call.hpp"

namespace longhaul::comm {
namespace {

constexpr int kRounds = 400;
/// On a machine with more ranks than cores a round may take a turn of the scheduler: then fewer do.
constexpr int kFewest = 20;
constexpr Duration kLongest = std::chrono::milliseconds{500};
constexpr std::int64_t kLast = 1;  ///< what the other side asks with, the last time

/// Rank 0's side: answers with its own stamp.
void serve(const Communicator& world, int rank) {
  for (std::int64_t asked = 0; asked != kLast;) {
    asked = world.receive(rank);
    world.send(now().count(), rank);
  }
}

ClockOffset ask(const Communicator& world) {
  Duration shortest = kNever;
  ClockOffset best;
  const TimePoint begin = now();
  for (int round = 1; round <= kRounds; ++round) {
    const bool last = round == kRounds || (round >= kFewest && now() - begin > kLongest);
    const TimePoint before = now();
    world.send(last ? kLast : 0, 0);
    const std::int64_t theirs = world.receive(0);
    const Duration round_trip = now() - before;
    if (round_trip < shortest) {
      shortest = round_trip;
      const TimePoint middle = before + round_trip / 2;
      // Halves of an odd round trip differ by a nanosecond.
      best = {middle, TimePoint{theirs} - middle, (round_trip + Duration{1}) / 2};
    }
    if (last) break;
  }
  return best;
}

/// Number of the clock that this process reads: the same for all of one kernel and time namespace,
/// such as containers or the synthetic nodes of one machine. 0: not known.
std::int64_t clock_number() {
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  std::string boot;
  if (!(file >> boot)) return 0;
  std::error_code none;  // kernels without time namespaces have one clock
  boot += std::filesystem::read_symlink("/proc/self/ns/time", none).string();
  return static_cast<std::int64_t>(std::hash<std::string>{}(boot));
}

/// The result of the lowest rank of this host.
ClockOffset share_on_host(const HostRanks& host_ranks, const ClockOffset& mine) {
  const auto of_lowest = [&](Duration value) {
    return Duration{host_ranks.host().all_gather(value.count()).front()};
  };
  return {of_lowest(mine.at), of_lowest(mine.offset), of_lowest(mine.error)};
}

}  // namespace

ClockOffset measure_clock_offset(const Communicator& world, const HostRanks& host_ranks,
                                 Measure which) {
  ClockOffset mine{now(), {}, {}};
  const std::vector<std::int64_t> clocks = world.all_gather(clock_number());
  for (int rank = 1; rank < world.size(); ++rank) {
    const auto clock = clocks[at(rank)];
    const bool has_own_clock =
        host_ranks.host_of(Rank{rank}) == Rank{rank} &&  // named for its lowest
        (clock == 0 || clock != clocks.front());
    if (which == Measure::across_hosts && !has_own_clock) continue;
    // One pair at a time: the others sleep, so that they do not disturb it.
    world.barrier();
    if (world.rank() != 0 && world.rank() != rank) continue;
    // These two wait inside MPI, for the shortest round trip.
    const BlockingCall guard{"the answer of a rank's clock", std::chrono::seconds{30}};
    if (world.rank() == 0) {
      serve(world, rank);
    } else {
      mine = ask(world);
    }
  }
  return which == Measure::always ? mine : share_on_host(host_ranks, mine);
}

}  // namespace longhaul::comm
