#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/tcp/tcp_options.hpp"
#include "wan_emulator/forwarder.hpp"

namespace longhaul::harness {

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

}  // namespace longhaul::harness
