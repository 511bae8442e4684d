#include "runtime/host/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include <hwloc.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/error.hpp"

namespace longhaul {
namespace {

/// Owns hwloc's view of this host.
class Topology {
public:
  Topology() {
    if (hwloc_topology_init(&handle_) != 0 || hwloc_topology_load(handle_) != 0)
      throw Error{"hwloc cannot read this machine's topology. Set HWLOC_COMPONENTS=no_os,x86.",
                  ExitCode::run_failed};
  }
  ~Topology() { hwloc_topology_destroy(handle_); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  [[nodiscard]] hwloc_topology_t get() const { return handle_; }
  [[nodiscard]] int count(hwloc_obj_type_t type) const {
    return std::max(0, hwloc_get_nbobjs_by_type(handle_, type));
  }

private:
  hwloc_topology_t handle_ = nullptr;
};

std::string plural(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string value_of(const char* file, const std::string& key) {
  std::ifstream in{file};
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace

Machine describe_machine() {
  const Topology topology;
  utsname names{};
  uname(&names);
  Machine machine;
  machine.host = names.nodename;
  machine.kernel = fmt::format("{} {}", names.sysname, names.release);
  machine.processor = value_of("/proc/cpuinfo", "model name");
  machine.cores = topology.count(HWLOC_OBJ_CORE);
  machine.topology =
      fmt::format("{}, {}, {}, {}", plural(topology.count(HWLOC_OBJ_PACKAGE), "package"),
                  plural(topology.count(HWLOC_OBJ_NUMANODE), "NUMA node"),
                  plural(machine.cores, "core"), plural(topology.count(HWLOC_OBJ_PU), "thread"));
  machine.memory =
      Bytes{std::strtoll(value_of("/proc/meminfo", "MemTotal").c_str(), nullptr, 10) * 1024};
  const unsigned version = hwloc_get_api_version();
  machine.hwloc_version =
      fmt::format("{}.{}.{}", version >> 16U, version >> 8U & 0xffU, version & 0xffU);
  return machine;
}

int bind_to_core(const Board& board) {
  const Topology topology;
  if (topology.count(HWLOC_OBJ_CORE) < board.local_ranks()) return -1;
  const int number = board.host().rank();
  const hwloc_obj_t core =
      hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(number));
  if (core == nullptr) return -1;
  return hwloc_set_cpubind(topology.get(), core->cpuset, HWLOC_CPUBIND_THREAD) == 0 ? number : -1;
}

Load load_now() {
  Load load;
  getloadavg(load.average.data(), static_cast<int>(load.average.size()));
  std::ifstream stat{"/proc/stat"};
  std::string word;
  stat >> word;  // "cpu": user nice system idle iowait irq softirq steal
  constexpr int kSteal = 7;
  for (int i = 0; i <= kSteal; ++i) {
    std::int64_t ticks = 0;
    stat >> ticks;
    load.all_ticks += ticks;
    if (i == kSteal) load.steal_ticks = ticks;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  load.involuntary_switches = usage.ru_nivcsw;
  load.voluntary_switches = usage.ru_nvcsw;
  const auto time = [](const timeval& value) {
    return std::chrono::seconds{value.tv_sec} + std::chrono::microseconds{value.tv_usec};
  };
  load.processor_time = time(usage.ru_utime) + time(usage.ru_stime);
  return load;
}

}  // namespace longhaul
