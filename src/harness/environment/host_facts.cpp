#include "harness/environment/host_facts.hpp"

#include <fstream>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include "base/value_in_file.hpp"

namespace longhaul::bench {
namespace {

using nlohmann::json;

/// A machine without frequency scaling, and most virtual ones, have none.
json governor(const std::filesystem::path& root) {
  std::set<std::string> found;
  std::error_code problem;
  for (const auto& entry :
       std::filesystem::directory_iterator{root / "sys/devices/system/cpu/cpufreq", problem}) {
    std::ifstream in{entry.path() / "scaling_governor"};
    if (std::string name; in >> name) found.insert(name);
  }
  return found.empty() ? json(nullptr) : json(fmt::format("{}", fmt::join(found, ",")));
}

}  // namespace

json host_facts(const FactSources& sources) {
  json facts = gpu_facts(sources);
  facts["governor"] = governor(sources.root);
  return facts;
}

json whole_host_facts(const FactSources& sources) {
  utsname names{};
  uname(&names);
  json facts = host_facts(sources);
  facts["name"] = names.nodename;
  facts["kernel"] = fmt::format("{} {}", names.sysname, names.release);
  facts["processor"] = value_in_file(sources.root / "proc/cpuinfo", "model name");
  facts["threads"] = std::thread::hardware_concurrency();
  const std::string memory = value_in_file(sources.root / "proc/meminfo", "MemTotal");
  facts["memory_bytes"] = std::strtoll(memory.c_str(), nullptr, 10) * 1024;
  return facts;
}

}  // namespace longhaul::bench
