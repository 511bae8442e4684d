#pragma once

#include <optional>

#include "scenario/scenario.hpp"

namespace longhaul::scenario {

/// The most connections of one link.
inline constexpr int kMostConnections = 1 << 16;

/// Atlas' limit of a node's rate on the WAN, for any number of connections (section 4.1).
inline constexpr Bandwidth kNodeCap = 5_Gbps;

/// Rate of one TCP connection: its bits in flight on the way there, over the one-way latency.
/// Without `window` Atlas' (table 1): 1220, 600, 396, 293 Mbps at 10, 20, 30, 40 ms exactly, that
/// is 12.2, 12, 11.88, 11.72 Mbit in flight; in between the window is interpolated linearly, beyond
/// the ends it is that of the end. Falls as the latency grows; unlimited without latency.
[[nodiscard]] Bandwidth connection_rate(Duration latency,
                                        std::optional<Bytes> window = std::nullopt);

/// The smallest number of connections that reaches the cap; nullopt where more than
/// kMostConnections would be needed.
[[nodiscard]] std::optional<int> connections_to_cap(Bandwidth each, Bandwidth cap);

/// min(count * each, cap).
[[nodiscard]] Bandwidth together(const Connections& connections);

}  // namespace longhaul::scenario
