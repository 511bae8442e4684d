#include "host/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/text_file.hpp"
#include "comm/group/thread_group.hpp"
#include "host/binding.hpp"

namespace longhaul::host {
namespace {

std::string plural(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string host_name() {
  utsname names{};
  uname(&names);
  return names.nodename;
}

Machine describe_machine() {
  const Topology topology;
  utsname names{};
  uname(&names);
  Machine machine;
  machine.host = host_name();
  machine.kernel = fmt::format("{} {}", names.sysname, names.release);
  machine.processor = value_in_file("/proc/cpuinfo", "model name");
  machine.cores = topology.count(HWLOC_OBJ_CORE);
  machine.topology =
      fmt::format("{}, {}, {}, {}", plural(topology.count(HWLOC_OBJ_PACKAGE), "package"),
                  plural(topology.count(HWLOC_OBJ_NUMANODE), "NUMA node"),
                  plural(machine.cores, "core"), plural(topology.count(HWLOC_OBJ_PU), "thread"));
  machine.memory =
      Bytes{std::strtoll(value_in_file("/proc/meminfo", "MemTotal").c_str(), nullptr, 10) * 1024};
  const unsigned version = hwloc_get_api_version();
  machine.hwloc_version =
      fmt::format("{}.{}.{}", version >> 16U, version >> 8U & 0xffU, version & 0xffU);
  return machine;
}

RankBinding bind_self(const comm::HostRanks& host_ranks) {
  const Topology topology;
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> mine{hwloc_bitmap_alloc(),
                                                                           &hwloc_bitmap_free};
  if (hwloc_get_cpubind(topology.get(), mine.get(), HWLOC_CPUBIND_THREAD) != 0)
    hwloc_bitmap_fill(mine.get());
  const std::string usable = to_text(mine.get());
  const auto hash = static_cast<std::int64_t>(std::hash<std::string>{}(usable));
  const auto all = host_ranks.host().all_gather(hash);
  const bool same_machine = std::ranges::count(all, hash) == std::ssize(all);
  const auto self = at(host_ranks.host().rank());
  if (!host_ranks.host().minimum(same_machine ? 1 : 0)) {  // the cores are given out already
    RankBinding binding = bind_ranks(topology, host_ranks.local_ranks())[self];
    const RankBinding bound = bind_ranks(topology, 1, usable).front();
    binding.cores = bound.cores;
    binding.threads = bound.threads;
    binding.has_cores = true;
    return binding;
  }
  RankBinding binding = bind_ranks(topology, host_ranks.local_ranks(), usable)[self];
  if (!binding.has_cores) return binding;
  hwloc_bitmap_list_sscanf(mine.get(), binding.threads.c_str());
  binding.has_cores = hwloc_set_cpubind(topology.get(), mine.get(), HWLOC_CPUBIND_THREAD) == 0;
  return binding;
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
  getrusage(comm::this_thread_rank() != nullptr ? RUSAGE_THREAD : RUSAGE_SELF, &usage);
  load.involuntary_switches = usage.ru_nivcsw;
  load.voluntary_switches = usage.ru_nvcsw;
  const auto time = [](const timeval& value) {
    return std::chrono::seconds{value.tv_sec} + std::chrono::microseconds{value.tv_usec};
  };
  load.processor_time = time(usage.ru_utime) + time(usage.ru_stime);
  return load;
}

std::array<double, 3> largest_of(const std::array<double, 3>& a, const std::array<double, 3>& b) {
  return {std::max(a[0], b[0]), std::max(a[1], b[1]), std::max(a[2], b[2])};
}

}  // namespace longhaul::host
