#include <algorithm>
#include <array>
#include <cmath>

#include "scenario/reader/link_values.hpp"

namespace longhaul::scenario {
namespace {

struct Measured {
  Duration latency;
  double bits_in_flight;
};

/// Atlas table 1: rate times latency.
constexpr std::array kAtlasMeasured{Measured{10ms, 12.2e6}, Measured{20ms, 12.0e6},
                                    Measured{30ms, 11.88e6}, Measured{40ms, 11.72e6}};

double atlas_bits_in_flight(Duration latency) {
  if (latency <= kAtlasMeasured.front().latency) return kAtlasMeasured.front().bits_in_flight;
  if (latency >= kAtlasMeasured.back().latency) return kAtlasMeasured.back().bits_in_flight;
  const auto above = std::ranges::upper_bound(kAtlasMeasured, latency, {}, &Measured::latency);
  const Measured& low = *(above - 1);
  const double way = static_cast<double>((latency - low.latency).count()) /
                     static_cast<double>((above->latency - low.latency).count());
  return low.bits_in_flight + way * (above->bits_in_flight - low.bits_in_flight);
}

}  // namespace

Bandwidth connection_rate(Duration latency, std::optional<Bytes> window) {
  if (latency == Duration::zero()) return Bandwidth::unlimited();
  const double bits =
      window ? 8.0 * static_cast<double>(window->count()) : atlas_bits_in_flight(latency);
  return Bandwidth{bits * 1e9 / static_cast<double>(latency.count())};
}

std::optional<int> connections_to_cap(Bandwidth each, Bandwidth cap) {
  if (each >= cap) return 1;
  const double count = std::ceil(cap.bits_per_second() / each.bits_per_second());
  if (!(count <= kMostConnections)) return std::nullopt;
  return static_cast<int>(count);
}

Bandwidth together(const Connections& connections) {
  return std::min(Bandwidth{connections.count * connections.each.bits_per_second()},
                  connections.cap);
}

}  // namespace longhaul::scenario
