#pragma once

#include <string>

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

}  // namespace longhaul::host
