#include "harness/environment/facts.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/text_file.hpp"
#include "base/version.hpp"

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

constexpr std::array kParameters{"OMPI_MCA_",  "PRTE_MCA_", "PMIX_MCA_", "MPICH_",
                                 "MPIR_CVAR_", "I_MPI_",    "UCX_",      "FI_",
                                 "NCCL_",      "HWLOC_",    "LONGHAUL_"};
/// Addresses, keys and places of one start: private, and of no use in a record.
constexpr std::array kOfTheLauncher{
    "OMPI_MCA_orte_",        "OMPI_MCA_prte_",         "OMPI_MCA_ess", "OMPI_MCA_pmix=",
    "OMPI_MCA_initial_wdir", "OMPI_MCA_shmem_RUNTIME", "PRTE_MCA_ess", "PRTE_MCA_prte_"};

constexpr std::array kOfTheJob{
    "JOB_ID",         "JOB_NAME",      "JOB_PARTITION",   "JOB_NUM_NODES",
    "JOB_NODELIST",   "NTASKS",        "NTASKS_PER_NODE", "CPUS_PER_TASK",
    "TASKS_PER_NODE", "DISTRIBUTION",  "CPU_BIND",        "GPUS",
    "GPUS_PER_NODE",  "GPUS_ON_NODE",  "MEM_PER_NODE",    "ARRAY_JOB_ID",
    "ARRAY_TASK_ID",  "RESTART_COUNT", "CLUSTER_NAME",    "MPI_TYPE"};

std::optional<std::string> find(const Variables& variables, const std::string& name) {
  const std::string start = name + "=";
  for (const std::string& variable : variables)
    if (variable.starts_with(start)) return variable.substr(start.size());
  return std::nullopt;
}

/// JSON holds nothing else: other bytes (an old encoding) become U+FFFD.
Json as_utf8(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

bool begins_with_one_of(const std::string& text, const auto& starts) {
  return std::ranges::any_of(starts, [&](const char* start) { return text.starts_with(start); });
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

Variables environment_variables() {
  Variables variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    variables.emplace_back(*variable);
  return variables;
}

Json program_facts(const std::string& command_line) {
  const std::string_view commit = git_commit();
  Json facts = {{"version", version()}, {"git_commit", commit}, {"command_line", command_line}};
  if (commit == "unknown") {
    facts["git_dirty"] = nullptr;
  } else {
    facts["git_dirty"] = commit.ends_with("-dirty");
  }
  return facts;
}

Json job_facts(const Variables& variables) {
  if (!find(variables, "SLURM_JOB_ID")) return nullptr;
  Json facts = Json::object();
  for (const char* const name : kOfTheJob)
    if (const auto value = find(variables, std::string{"SLURM_"} + name))
      facts[lower_case(name)] = as_utf8(*value);
  return facts;
}

Json mpi_parameters(const Variables& variables) {
  Json facts = Json::object();
  for (const std::string& variable : variables) {
    const std::size_t end = variable.find('=');
    if (end == std::string::npos || !begins_with_one_of(variable, kParameters) ||
        begins_with_one_of(variable, kOfTheLauncher))
      continue;
    facts[variable.substr(0, end)] = as_utf8(variable.substr(end + 1));
  }
  return facts;
}

Json local_environment(const std::string& command_line) {
  return {{"hosts", Json::array({whole_host_facts()})},
          {"program", program_facts(command_line)},
          {"slurm", job_facts(environment_variables())}};
}

namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
constexpr std::string_view kQuotedQuote = R"('\'')";

void append_word(std::string& text, std::string_view word) {
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    text.append(word);
    return;
  }
  text.push_back('\'');
  for (const char c : word) {
    if (c == '\'') {
      text.append(kQuotedQuote);
    } else {
      text.push_back(c);
    }
  }
  text.push_back('\'');
}

}  // namespace

std::string command_line(int argc, char** argv) {
  std::string text;
  for (int i = 0; i < argc; ++i) {
    if (i > 0) text.push_back(' ');
    append_word(text, argv[i]);
  }
  return text;
}

std::string now_in_words() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace longhaul::harness
