#include "report/host_load.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace longhaul::report {
namespace {

using Json = nlohmann::json;

double largest_load(const Json& host) {
  const Json loads = host.value("load_average", Json::object());
  double largest = 0;
  for (const char* when : {"before", "during", "after"})
    if (loads.contains(when) && loads[when].is_array() && !loads[when].empty())
      largest = std::max(largest, loads[when].front().get<double>());
  return largest;
}

/// Programs of scripts/awake, each 1 of the load that takes no time of it. They are on the host
/// that started the run: among several it is not known which that is.
double awake_programs(const Json& environment) {
  if (environment.value("hosts", Json::array()).size() != 1) return 0;
  const Json parameters =
      environment.value("mpi", Json::object()).value("parameters", Json::object());
  const std::string count = parameters.value("LONGHAUL_AWAKE", "0");
  int programs = 0;
  std::from_chars(count.data(), count.data() + count.size(), programs);
  return programs;
}

}  // namespace

HostLoad busiest_host(const Json& environment) {
  HostLoad busiest;
  double most = -1;
  const double awake = awake_programs(environment);
  const Json hosts = environment.value("hosts", Json::array());
  for (const Json& host : hosts) {
    const int cores = host.value("cores", 0);
    const double load = std::max(0.0, largest_load(host) - awake);
    if (cores == 0 || load / cores <= most) continue;
    most = load / cores;
    busiest = {load, cores, static_cast<int>(host.value("ranks", Json::array()).size())};
  }
  return busiest;
}

std::string load_text(const HostLoad& host) {
  return fmt::format("load {:.1f} on {} core{}", host.load, host.cores, host.cores == 1 ? "" : "s");
}

std::string load_doubt_text(const Json& environment) {
  if (!environment.is_object()) return {};
  const HostLoad host = busiest_host(environment);
  if (host.cores == 0 || host.load <= host.cores) return {};
  return fmt::format("! doubtful: {}\n", load_text(host));
}

}  // namespace longhaul::report
