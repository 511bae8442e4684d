#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "harness/environment/shared_options.hpp"
#include "wan_emulator/flows.hpp"
#include "wan_emulator/forwarder.hpp"

namespace longhaul::harness {

/// Options of bench_tcp, as typed.
struct TcpOptions : SharedOptions {
  std::string latencies = "10ms,20ms,30ms,40ms", connections = "1,fit";
  std::string cap = "5Gbps", window = "3MB", scale = "auto";
  std::string congestion_control = "cubic";
  std::string send_buffer = "0B", receive_buffer = "0B";
  std::string warmup = "2s", measured = "3s", queue = "16MiB";
  int repetitions = 3;
  double loss = 0;
  std::uint64_t seed = 1;
  int mtu = 1500;
};
void declare(Arguments& arguments, TcpOptions& options);

/// The same, read. Rates and window are the unscaled ones.
struct TcpSettings {
  std::vector<Duration> latencies;
  std::vector<int> connections;  ///< 0: as many as fill the cap
  Bandwidth cap;
  Bytes window;                               ///< 0: as the kernel tunes itself
  double scale = 0;                           ///< 0: chosen by the ceiling
  wan_emulator::FlowSettings flows;           ///< without connections and window
  wan_emulator::ForwarderSettings forwarder;  ///< without latency and rates
  int repetitions = 0;
};
[[nodiscard]] TcpSettings settings_of(const TcpOptions& options);

/// Some connections at one latency.
struct TcpPoint {
  Duration latency{};
  int connections = 0;
  Bandwidth expected;  ///< min(connections * window / round trip, cap)
  std::vector<wan_emulator::FlowResult> repetitions;
  wan_emulator::PathCounters path;  ///< of the direction of the data, of the last repetition
  wan_emulator::Lateness lateness;  ///< of the forwarder in the last repetition
  [[nodiscard]] std::vector<double> rates() const;  ///< bit/s of each repetition
  [[nodiscard]] double median_rate() const;         ///< bit/s
};

struct TcpRun {
  wan_emulator::Ceiling ceiling;
  double scale = 1;
  Bandwidth cap;  ///< scaled
  Bytes window;   ///< scaled
  bool realtime = false;
  std::vector<TcpPoint> points;
};

/// Connections that fill `cap` at this latency, each with `window` on its way: one way and back.
[[nodiscard]] int connections_to_fill(Bandwidth cap, Bytes window, Duration latency);

/// Measures all points; `note` hears of each before it begins.
[[nodiscard]] TcpRun measure_points(const TcpSettings& settings,
                                    const std::function<void(const std::string&)>& note);

/// Comparison of the run with the shape of table 1 and figure 5, with the reasons of a difference.
struct Shape {
  bool holds = true;
  std::vector<std::string> remarks;
};
[[nodiscard]] Shape shape_of(const TcpRun& run);

/// Megabit per second that Atlas' table 1 gives for one connection at this latency.
[[nodiscard]] std::optional<double> published_mbps(Duration latency);

/// The kernel, processors and the load average, as they are now.
[[nodiscard]] nlohmann::ordered_json machine_now();

/// {"before", "during", "after"}: averages of 1, 5 and 15 minutes of looks at machine_now(), the
/// first and the last of them, and the largest of all. Precondition: there is one.
[[nodiscard]] nlohmann::ordered_json load_of(const std::vector<nlohmann::ordered_json>& looks);

[[nodiscard]] std::string table_of(const TcpRun& run);
[[nodiscard]] std::string csv_of(const TcpRun& run);
/// `looks` at machine_now(): the first was before the run, the others while it went on.
[[nodiscard]] nlohmann::ordered_json record_of(const TcpRun& run, const TcpOptions& options,
                                               std::vector<nlohmann::ordered_json> looks);

}  // namespace longhaul::harness
