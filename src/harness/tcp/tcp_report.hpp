#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "harness/tcp/tcp_points.hpp"

namespace longhaul::harness {

/// Megabit per second that Atlas' table 1 gives for one connection at this latency.
[[nodiscard]] std::optional<double> published_mbps(Duration latency);

/// The kernel, processors and the load average, as they are now.
[[nodiscard]] nlohmann::ordered_json machine_now();

[[nodiscard]] std::string table_of(const TcpRun& run);
[[nodiscard]] std::string csv_of(const TcpRun& run);
[[nodiscard]] nlohmann::ordered_json record_of(const TcpRun& run, const TcpOptions& options,
                                               const nlohmann::ordered_json& machine_before);

}  // namespace longhaul::harness
