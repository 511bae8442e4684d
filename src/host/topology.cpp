#include "host/topology.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/error.hpp"

namespace longhaul::host {

Topology::Topology(Empty) {
  if (hwloc_topology_init(&handle_) != 0 ||
      hwloc_topology_set_io_types_filter(handle_, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0)
    throw Error{"hwloc does not start. Check its installation.", ExitCode::run_failed};
}

Topology::Topology() : Topology{Empty{}} { load(); }

Topology Topology::of_description(const std::string& text) {
  Topology topology{Empty{}};
  if (hwloc_topology_set_synthetic(topology.handle_, text.c_str()) != 0)
    fail("hwloc does not understand '{}'. Write package:2 core:4 pu:2.", text);
  topology.load();
  return topology;
}

Topology Topology::of_xml(const std::string& text) {
  Topology topology{Empty{}};
  const int length = static_cast<int>(text.size()) + 1;
  if (hwloc_topology_set_xmlbuffer(topology.handle_, text.c_str(), length) != 0)
    fail("this is no topology in XML. Write it with lstopo --of xml.");
  topology.load();
  return topology;
}

Topology::Topology(Topology&& other) noexcept : handle_{std::exchange(other.handle_, nullptr)} {}

Topology::~Topology() {
  if (handle_ != nullptr) hwloc_topology_destroy(handle_);
}

/// One after the other: libudev, which hwloc asks, sets up what its users share at its first use
/// without a lock, and ranks may be threads.
void Topology::load() {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock{one_at_a_time};
  if (hwloc_topology_load(handle_) != 0)
    throw Error{"hwloc cannot read this machine's topology. Set HWLOC_COMPONENTS=no_os,x86.",
                ExitCode::run_failed};
}

int Topology::count(hwloc_obj_type_t type) const {
  return std::max(0, hwloc_get_nbobjs_by_type(handle_, type));
}

}  // namespace longhaul::host
