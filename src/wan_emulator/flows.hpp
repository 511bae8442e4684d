#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "wan_emulator/namespaces.hpp"

namespace longhaul::wan_emulator {

/// Bytes that a sender hands its socket in one call: a message, as far as a stream has any.
inline constexpr Bytes kFlowWrite{256 << 10};

/// Some TCP connections from one site to another that send as fast as they may.
struct FlowSettings {
  int connections = 1;
  std::string congestion_control = "cubic";
  Bytes window;          ///< advertised by the receiver at most; 0: as the kernel tunes itself
  Bytes send_buffer;     ///< SO_SNDBUF asked for; 0: as the kernel tunes itself
  Bytes receive_buffer;  ///< SO_RCVBUF likewise
  Duration warmup{2s};   ///< slow start, not counted
  Duration measured{3s};
  Duration interval{100ms};  ///< of the samples whose spread is reported
};

/// State of one connection at the end, as the kernel reports it (TCP_INFO of the sender), and the
/// buffers that it granted.
struct FlowState {
  std::int64_t bytes = 0;  ///< received while it was measured
  Duration smoothed_rtt{}, least_rtt{};
  std::int64_t congestion_window_bytes = 0;
  std::int64_t advertised_window_bytes = 0;  ///< by the receiver
  std::int64_t retransmits = 0;              ///< segments, since it began
  Duration busy{}, window_limited{}, buffer_limited{};
  std::int64_t send_buffer_bytes = 0, receive_buffer_bytes = 0;
  std::string congestion_control;
};

struct FlowResult {
  Duration elapsed{};
  std::vector<FlowState> flows;
  std::vector<std::int64_t> interval_bytes;  ///< of all connections together
  [[nodiscard]] Bandwidth rate() const;
  [[nodiscard]] std::int64_t retransmits() const;
  /// Standard deviation over mean of the intervals' rates, in percent.
  [[nodiscard]] double variation_percent() const;
};

/// From site 0 to site 1. Throws Error (exit code 2) where the kernel does not know the congestion
/// control; it names those that it knows.
[[nodiscard]] FlowResult measure_flows(const NetworkNamespace& from, const NetworkNamespace& to,
                                       const FlowSettings& settings);

/// Both ends of the connections of one measurement, each inside its namespace.
class Connections {
public:
  /// Connects them all and waits until they are.
  Connections(const NetworkNamespace& from, const NetworkNamespace& to,
              const FlowSettings& settings);

  [[nodiscard]] const std::vector<FileDescriptor>& senders() const { return senders_; }
  /// In the order in which they were accepted.
  [[nodiscard]] const std::vector<FileDescriptor>& receivers() const { return receivers_; }
  /// States of all senders, with the buffers of the receivers. `bytes` stays 0.
  [[nodiscard]] std::vector<FlowState> states() const;
  /// Limits the receivers' windows again: kernels from 6.6 on replace the limit whenever they learn
  /// how much memory the bytes of a segment take.
  void limit_windows(const FlowSettings& settings) const;

private:
  std::vector<FileDescriptor> senders_, receivers_;
};

}  // namespace longhaul::wan_emulator
