#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenario/reader/sections.hpp"
#include "scenario/regions.hpp"
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

/// The datacenter that a field names.
[[nodiscard]] DatacenterId datacenter_named(const Field& field, const Scenario& scenario);

/// Fails where a limited rate would take a time without a size.
void refuse_rate_without_size(const Field& field, const Scenario& scenario, bool message_known);

/// Keys of [[link]].
[[nodiscard]] const std::vector<std::string>& link_keys();
/// Does an entry leave nothing to measurements between regions?
[[nodiscard]] bool gives_latency_and_rate(const Section& section);
/// `link` with what one [[link]] says written over it, ends aside.
[[nodiscard]] Link read_link(const Section& section, Link link, const Scenario& scenario,
                             bool message_known);

/// Adds one [[node]].
void read_node(const ConfigNode& table, Scenario& scenario, bool message_known);

/// The regions that datacenters lie in, and what [wan] says was measured between them.
class SiteRegions {
public:
  /// Reads [wan]; refuses regions that the table does not have.
  SiteRegions(const ConfigNode& root, const Scenario& scenario);

  [[nodiscard]] bool any() const { return any_; }
  /// Do both have a region?
  [[nodiscard]] bool both(DatacenterId from, DatacenterId to) const;
  /// Of both; "" where one of them has none.
  [[nodiscard]] std::pair<std::string_view, std::string_view> names(DatacenterId from,
                                                                    DatacenterId to) const;
  /// The measurement from one to the other, or else the opposite one; in one region, where neither
  /// was measured, the preset same-region. nullopt where there is none, or one has no region.
  [[nodiscard]] std::optional<RegionPair> link(DatacenterId from, DatacenterId to) const;
  [[noreturn]] void refuse_pair(const ConfigPosition& place, DatacenterId from,
                                DatacenterId to) const;
  [[noreturn]] void refuse_unknown_message() const;
  /// To append to the scenario's text, so that it is complete without the file that [wan] names;
  /// empty where it names none.
  [[nodiscard]] const std::string& held_text() const { return held_text_; }

private:
  [[nodiscard]] const std::string& region(DatacenterId id) const;
  void read_own(const ConfigNode& root, const Field& field);
  void require_known(const ConfigNode& root) const;

  const Scenario& scenario_;
  bool any_ = false;
  RegionTable own_;                     ///< of wan.regions
  const RegionTable* table_ = nullptr;  ///< own_ or the built-in one
  Field first_;                         ///< the first datacenter.region
  std::string held_text_;
};

}  // namespace longhaul::scenario
