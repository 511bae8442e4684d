#include "harness/environment/host_facts.hpp"

#include <fstream>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include "base/text_file.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

/// A machine without frequency scaling, and most virtual ones, have none.
Json governor(const std::filesystem::path& root) {
  std::set<std::string> found;
  std::error_code problem;
  for (const auto& entry :
       std::filesystem::directory_iterator{root / "sys/devices/system/cpu/cpufreq", problem}) {
    std::ifstream in{entry.path() / "scaling_governor"};
    if (std::string name; in >> name) found.insert(name);
  }
  return found.empty() ? Json(nullptr) : Json(fmt::format("{}", fmt::join(found, ",")));
}

}  // namespace

Json host_facts(const FactSources& sources) {
  Json facts = gpu_facts(sources);
  facts["governor"] = governor(sources.root);
  return facts;
}

Json whole_host_facts(const FactSources& sources) {
  utsname names{};
  uname(&names);
  Json facts = host_facts(sources);
  facts["name"] = names.nodename;
  facts["kernel"] = fmt::format("{} {}", names.sysname, names.release);
  facts["processor"] = value_in_file(sources.root / "proc/cpuinfo", "model name");
  facts["threads"] = std::thread::hardware_concurrency();
  const std::string memory = value_in_file(sources.root / "proc/meminfo", "MemTotal");
  facts["memory_bytes"] = std::strtoll(memory.c_str(), nullptr, 10) * 1024;
  return facts;
}

}  // namespace longhaul::harness
