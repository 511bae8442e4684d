#pragma once

#include <vector>

#include "wan_emulator/flows.hpp"

namespace longhaul::wan_emulator {

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
