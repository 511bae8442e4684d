#include "host/binding.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::host {
namespace {

struct FreeBitmap {
  void operator()(hwloc_bitmap_t set) const { hwloc_bitmap_free(set); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Bitmap make_bitmap() { return Bitmap{hwloc_bitmap_alloc()}; }

/// A device that computes: NVIDIA's and AMD's displays and 3D controllers, and Intel's and others'
/// processing accelerators; not the display of a server's console (PCI class codes 03 and 12).
bool is_gpu(hwloc_obj_t device) {
  const auto& pci = device->attr->pcidev;
  const unsigned kind = pci.class_id >> 8U;
  constexpr unsigned kDisplay = 0x03, kAccelerator = 0x12, kNvidia = 0x10de, kAmd = 0x1002;
  return kind == kAccelerator ||
         (kind == kDisplay && (pci.vendor_id == kNvidia || pci.vendor_id == kAmd)) ||
         pci.class_id == 0x0380;
}

std::string address_of(hwloc_obj_t device) {
  const auto& pci = device->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", static_cast<unsigned>(pci.domain), pci.bus,
                     pci.dev, static_cast<unsigned>(pci.func));
}

std::vector<hwloc_obj_t> gpus_of(const Topology& topology) {
  std::map<std::string, hwloc_obj_t> found;
  for (hwloc_obj_t device = nullptr;
       (device = hwloc_get_next_pcidev(topology.get(), device)) != nullptr;)
    if (is_gpu(device)) found[address_of(device)] = device;
  std::vector<hwloc_obj_t> gpus;
  for (const auto& [address, device] : found) gpus.push_back(device);
  return gpus;
}

/// How many objects above both: the more, the nearer.
int depth_of_ancestor(hwloc_obj_t a, hwloc_obj_t b) {
  for (hwloc_obj_t up = a; up != nullptr; up = up->parent)
    for (hwloc_obj_t other = b; other != nullptr; other = other->parent)
      if (up == other) {
        int depth = 0;
        for (hwloc_obj_t at = up; at != nullptr; at = at->parent) ++depth;
        return depth;
      }
  return 0;
}

/// InfiniBand before others at the same distance, then by name. Only what has a PCI device.
std::string nearest_nic(const Topology& topology, hwloc_obj_t to) {
  std::string best;
  std::pair<int, bool> best_rank{-1, false};
  for (hwloc_obj_t nic = nullptr; (nic = hwloc_get_next_osdev(topology.get(), nic)) != nullptr;) {
    const bool fabric = nic->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
    if (!fabric && nic->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK) continue;
    const std::pair rank{depth_of_ancestor(nic, to), fabric};
    if (rank > best_rank || (rank == best_rank && best > nic->name)) {
      best = nic->name;
      best_rank = rank;
    }
  }
  return best;
}

/// Cores in a set of processors, by hwloc's numbers.
Bitmap cores_in(const Topology& topology, hwloc_const_cpuset_t set) {
  Bitmap cores = make_bitmap();
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_CORE, core)) != nullptr;)
    if (hwloc_bitmap_intersects(core->cpuset, set))
      hwloc_bitmap_set(cores.get(), core->logical_index);
  return cores;
}

/// `count` sets out of one, core by core and in order, so that neighbours are near each other:
/// whole cores, as even as can be. Where there are fewer cores, all of it for each.
std::vector<Bitmap> split(const Topology& topology, hwloc_const_cpuset_t set, std::size_t count) {
  const Bitmap cores = cores_in(topology, set);
  const auto all = to_size(std::max(0, hwloc_bitmap_weight(cores.get())));
  std::vector<Bitmap> parts;
  for (std::size_t i = 0; i < count; ++i)
    parts.push_back(all < count ? Bitmap{hwloc_bitmap_dup(set)} : make_bitmap());
  if (all < count) return parts;
  std::size_t position = 0;
  for (int id = hwloc_bitmap_first(cores.get()); id >= 0; id = hwloc_bitmap_next(cores.get(), id)) {
    // Part i has the positions from i * all / count on.
    const std::size_t part = ((position + 1) * count - 1) / all;
    const hwloc_obj_t core =
        hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(id));
    Bitmap own = make_bitmap();
    hwloc_bitmap_and(own.get(), core->cpuset, set);
    hwloc_bitmap_or(parts[part].get(), parts[part].get(), own.get());
    ++position;
  }
  return parts;
}

/// A rank's GPU (nullptr: none), and the processors near it.
struct GpuLocality {
  hwloc_obj_t gpu = nullptr;
  Bitmap near;
};

GpuLocality locality_of(const std::vector<hwloc_obj_t>& gpus, const Topology& topology, int rank,
                        int ranks, hwloc_const_cpuset_t usable) {
  GpuLocality locality{nullptr, Bitmap{hwloc_bitmap_dup(usable)}};
  if (gpus.empty()) return locality;
  const int count = static_cast<int>(gpus.size());
  locality.gpu = gpus[at(ranks <= count ? rank : rank * count / ranks)];
  const hwloc_obj_t around = hwloc_get_non_io_ancestor_obj(topology.get(), locality.gpu);
  // A GPU whose cores are not ours to use is as far as any other.
  if (around != nullptr && hwloc_bitmap_intersects(around->cpuset, usable))
    hwloc_bitmap_and(locality.near.get(), around->cpuset, usable);
  return locality;
}

Bitmap usable_set(const Topology& topology, const std::string& usable) {
  Bitmap set{hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology.get()))};
  if (usable.empty()) return set;
  const Bitmap given = make_bitmap();
  if (hwloc_bitmap_list_sscanf(given.get(), usable.c_str()) != 0)
    fail("'{}' is no list of processors. Write 0-3,8.", usable);
  hwloc_bitmap_and(set.get(), set.get(), given.get());
  return set;
}

}  // namespace

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

std::string to_text(hwloc_const_bitmap_t set) {
  char* text = nullptr;
  if (hwloc_bitmap_list_asprintf(&text, set) < 0) return "";
  const std::unique_ptr<char, decltype(&std::free)> owner{text, &std::free};
  return text;
}

std::vector<RankBinding> bind_ranks(const Topology& topology, int ranks,
                                    const std::string& usable) {
  const Bitmap all = usable_set(topology, usable);
  const auto gpus = gpus_of(topology);
  std::vector<GpuLocality> localities;
  std::map<std::string, std::vector<std::size_t>> neighbours;  // by the processors near them
  for (int rank = 0; rank < ranks; ++rank) {
    localities.push_back(locality_of(gpus, topology, rank, ranks, all.get()));
    neighbours[to_text(localities.back().near.get())].push_back(localities.size() - 1);
  }
  std::vector<RankBinding> bindings(localities.size());
  for (const auto& [near, group] : neighbours) {
    const auto parts = split(topology, localities[group.front()].near.get(), group.size());
    for (std::size_t i = 0; i < group.size(); ++i) {
      const hwloc_obj_t gpu = localities[group[i]].gpu;
      RankBinding& binding = bindings[group[i]];
      if (gpu != nullptr) binding.gpu = address_of(gpu);
      const Bitmap cores = cores_in(topology, parts[i].get());
      binding.cores = to_text(cores.get());
      binding.threads = to_text(parts[i].get());
      binding.has_cores =
          to_size(hwloc_bitmap_weight(
              cores_in(topology, localities[group.front()].near.get()).get())) >= group.size();
      const hwloc_obj_t by =
          gpu != nullptr ? gpu : hwloc_get_obj_covering_cpuset(topology.get(), parts[i].get());
      if (by != nullptr) binding.nic = nearest_nic(topology, by);
    }
  }
  return bindings;
}

}  // namespace longhaul::host
