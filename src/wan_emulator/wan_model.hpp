#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/units.hpp"
#include "wan_emulator/tun_device.hpp"

namespace longhaul::wan_emulator {

/// One direction between two sites.
struct PathSettings {
  Duration latency{};  ///< one way
  Bandwidth rate;      ///< of the pair in this direction
  double loss = 0;     ///< probability that a packet is lost
};

struct WanSettings {
  int sites = 2;
  PathSettings all;  ///< of every pair that is not named below
  struct Pair {
    int a = 0, b = 0;
    PathSettings path;
  };
  std::vector<Pair> pairs;  ///< the same in both directions
  Bandwidth node;           ///< the most that a site sends and, apart from it, receives
  Bytes queue{16 << 20};    ///< at each rate; what finds it full is dropped
  Bytes memory{512 << 20};  ///< of all packets together, those on their way included
  std::uint64_t seed = 1;   ///< of losses
};

/// The fate of the packets from one site to another.
struct PathCounters {
  std::int64_t packets = 0, bytes = 0;  ///< taken in
  std::int64_t lost = 0;                ///< by the loss probability
  std::int64_t dropped = 0;             ///< queue full
  std::int64_t delivered = 0;
};

/// A rate at which bytes pass one after the other.
class Serializer {
public:
  explicit Serializer(Bandwidth rate = {}) : rate_{rate} {}
  /// When the first and the last bit of a packet go by.
  struct Passage {
    Duration first{}, last{};
  };
  /// The passage of a packet that comes with `at`; what comes faster than the rate is spread out
  /// without waiting for the whole packet (cut-through).
  Passage pass(Passage at, Bytes size);
  /// Bytes that wait at `now`.
  [[nodiscard]] Bytes backlog(Duration now) const;

private:
  Bandwidth rate_;
  Duration free_{};
};

/// The WAN without its devices: which packet comes out where and when. Pure: time is what the
/// caller says, so that tests have exact time stamps. Packets of one path keep their order.
class WanModel {
public:
  explicit WanModel(const WanSettings& settings);

  struct Delivery {
    int site = 0;
    Duration due{};
    Frame frame;
  };
  /// Takes a packet at `now`; false where it was lost or dropped.
  bool offer(Duration now, int from, int to, Bytes size, Frame frame);
  /// When something is to be done next; none while no packet is on its way.
  [[nodiscard]] std::optional<Duration> next_event() const;
  /// The next packet that is due by `now`, the earliest first.
  [[nodiscard]] std::optional<Delivery> take_due(Duration now);

  [[nodiscard]] const PathCounters& counters(int from, int to) const {
    return path(from, to).counters;
  }

private:
  struct Packet {
    int from = 0;
    Serializer::Passage passage;
    Bytes size;
    Frame frame;
  };
  struct Path {
    PathSettings settings;
    Serializer rate;
    Random loss{0};
    std::deque<Packet> on_the_way;
    PathCounters counters;
  };
  struct Site {
    Serializer egress, ingress;
    std::deque<Packet> arriving;
  };
  [[nodiscard]] std::size_t index(int from, int to) const;
  [[nodiscard]] Path& path(int from, int to) { return paths_[index(from, to)]; }
  [[nodiscard]] const Path& path(int from, int to) const { return paths_[index(from, to)]; }
  /// Brings what has crossed the WAN by `now` to the interfaces of its sites.
  void arrive(Duration now);
  void enter(int site, Path& from);

  WanSettings settings_;
  std::deque<Path> paths_;
  std::deque<Site> sites_;
  Bytes held_;
};

}  // namespace longhaul::wan_emulator
