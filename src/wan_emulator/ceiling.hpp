#pragma once

#include <string>

#include "base/units.hpp"

namespace longhaul::wan_emulator {

/// Capacity of the forwarder on this machine, as busy as it is: without latency, rate or loss.
struct Ceiling {
  Bandwidth rate;                 ///< TCP, 4 connections, one direction
  double packets_per_second = 0;  ///< of 100 bytes each
  [[nodiscard]] std::string text() const;
};

/// Takes about 2 s. Between two namespaces of its own.
[[nodiscard]] Ceiling measure_ceiling(int mtu);

/// Measured rates stay below the ceiling divided by this: above, they would be the forwarder's.
constexpr double kBelowCeiling = 1.5;

}  // namespace longhaul::wan_emulator
