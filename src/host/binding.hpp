#pragma once

#include <string>
#include <vector>

#include <hwloc.h>

namespace longhaul::host {

/// Owns hwloc's view of a host, with its PCI devices.
class Topology {
public:
  /// This host, as far as it may be used. Throws Error.
  Topology();
  /// "package:2 core:4 pu:2", as hwloc describes synthetic hosts.
  [[nodiscard]] static Topology of_description(const std::string& text);
  /// As lstopo writes it.
  [[nodiscard]] static Topology of_xml(const std::string& text);
  Topology(Topology&& other) noexcept;
  Topology& operator=(Topology&&) = delete;
  ~Topology();

  [[nodiscard]] hwloc_topology_t get() const { return handle_; }
  [[nodiscard]] int count(hwloc_obj_type_t type) const;

private:
  struct Empty {};
  explicit Topology(Empty);
  void load();
  hwloc_topology_t handle_ = nullptr;
};

/// Where a rank sits on its host.
struct RankBinding {
  std::string gpu;    ///< PCI address of its GPU; "" where the host has none
  std::string nic;    ///< the network interface nearest to that, or to its cores; "" where none is
  std::string cores;  ///< of its own, or those near its GPU that it shares: "0-3,8", as hwloc
                      ///< numbers cores
  std::string threads;     ///< the same as the system numbers processors
  bool has_cores = false;  ///< no other rank of this host has one of these
};

/// Bindings of a host's ranks, in order. GPUs are given out in order of PCI address, one each as
/// long as there are enough, then shared by neighbours; cores are those near the rank's GPU, split
/// evenly and along the topology among the ranks that sit there. `usable`: processors that a
/// launcher left to these ranks ("0-15"; "": all of the topology).
[[nodiscard]] std::vector<RankBinding> bind_ranks(const Topology& topology, int ranks,
                                                  const std::string& usable = "");

/// "0-3,8".
[[nodiscard]] std::string to_text(hwloc_const_bitmap_t set);

}  // namespace longhaul::host
