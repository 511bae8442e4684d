#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/units.hpp"
#include "wan_emulator/namespaces.hpp"
#include "wan_emulator/tun_device.hpp"
#include "wan_emulator/wan_model.hpp"

namespace longhaul::wan_emulator {

struct ForwarderSettings {
  WanSettings wan;
  int mtu = 1500;
  Duration spin{std::chrono::microseconds{30}};  ///< polled before a deadline instead of slept
};

/// How late packets came out, beyond what the model says: bin k counts lateness below 2^k us.
struct Lateness {
  static constexpr std::size_t kBins = 24;
  std::array<std::int64_t, kBins> bins{};
  Duration longest{};
  void add(Duration late);
  /// The upper end of the bin that holds this share (0 to 1) of all packets; 0 where there are
  /// none.
  [[nodiscard]] Duration quantile(double share) const;
};

struct ForwarderReport {
  std::vector<PathCounters> paths;  ///< from * sites + to
  Lateness lateness;
  std::int64_t foreign = 0;  ///< not IPv4 to a site of ours
  std::int64_t refused = 0;  ///< by the receiving kernel
  Duration busy{};           ///< processor time of the thread
};

/// Joins namespaces through one TUN device each, on a thread of its own; with a real-time priority
/// where the system grants one. Ends with the object.
class Forwarder {
public:
  /// `sites` in the order of their numbers; as many as the settings say.
  Forwarder(const std::vector<NetworkNamespace>& sites, const ForwarderSettings& settings);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  [[nodiscard]] ForwarderReport report() const;
  /// Empty while all is well; why the thread has ended otherwise.
  [[nodiscard]] std::string problem() const;
  [[nodiscard]] bool is_realtime() const { return realtime_; }

private:
  void run();
  bool take_in();
  bool put_out(Duration now);
  void wait(std::optional<Duration> next, Duration now) const;
  [[nodiscard]] Frame empty_frame();
  void recycle(Frame frame);

  ForwarderSettings settings_;
  std::vector<TunDevice> devices_;
  FileDescriptor poll_, timer_, wake_;
  WanModel model_;
  std::vector<Frame> spare_;
  ForwarderReport report_;
  std::string problem_;
  mutable std::mutex guard_;  ///< of the model's counters, the report and the problem
  std::atomic<bool> stop_{false}, realtime_{false};
  std::thread thread_;
};

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
