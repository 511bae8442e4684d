#pragma once

#include <string>
#include <vector>

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

}  // namespace longhaul::harness
