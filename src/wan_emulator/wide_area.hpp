#pragma once

#include <vector>

#include "wan_emulator/forwarder.hpp"
#include "wan_emulator/namespaces.hpp"

namespace longhaul::wan_emulator {

/// Sites without names, and the WAN between them. All of it ends with the object or the process.
class WideArea {
public:
  explicit WideArea(const ForwarderSettings& settings)
      : sites_{sites_of(settings.wan.sites)}, forwarder_{sites_, settings} {}

  [[nodiscard]] const NetworkNamespace& site(int number) const {
    return sites_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] ForwarderReport report() const { return forwarder_.report(); }
  [[nodiscard]] const Forwarder& forwarder() const { return forwarder_; }

private:
  /// The sites' namespaces; the metrics that one connection learnt of a path are not kept for the
  /// next one.
  [[nodiscard]] static std::vector<NetworkNamespace> sites_of(int count) {
    std::vector<NetworkNamespace> sites;
    for (int i = 0; i < count; ++i) {
      sites.push_back(NetworkNamespace::create());
      sites.back().set("ipv4/tcp_no_metrics_save", "1");
    }
    return sites;
  }

  std::vector<NetworkNamespace> sites_;
  Forwarder forwarder_;
};

}  // namespace longhaul::wan_emulator
