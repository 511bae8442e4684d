#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include <dlfcn.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/environment/facts.hpp"

namespace longhaul::harness {
namespace {

using Json = nlohmann::json;

/// Owns a library that may not be there.
class Library {
public:
  explicit Library(const std::string& name) : handle_{dlopen(name.c_str(), RTLD_NOW), &close} {}
  [[nodiscard]] explicit operator bool() const { return handle_ != nullptr; }
  template <typename Function>
  [[nodiscard]] Function* find(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_.get(), name));
  }

private:
  static void close(void* handle) {
    if (handle != nullptr) dlclose(handle);
  }
  std::unique_ptr<void, void (*)(void*)> handle_;
};

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ...": the first word of
/// digits and dots.
std::optional<std::string> driver_of_proc(const std::filesystem::path& root) {
  std::ifstream in{root / "proc/driver/nvidia/version"};
  std::string line;
  std::getline(in, line);
  std::istringstream words{line};
  for (std::string word; words >> word;)
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  return std::nullopt;
}

std::string after_colon(const std::string& line) {
  const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
  return begin == std::string::npos ? "" : line.substr(begin);
}

Json gpus_of_proc(const std::filesystem::path& root) {
  std::map<std::string, Json> by_address;
  std::error_code problem;
  for (const auto& entry :
       std::filesystem::directory_iterator{root / "proc/driver/nvidia/gpus", problem}) {
    const std::string address = entry.path().filename().string();
    Json gpu = {{"pci", address}, {"name", nullptr}};
    std::ifstream in{entry.path() / "information"};
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("Model:")) gpu["name"] = after_colon(line);
    by_address[address] = std::move(gpu);
  }
  Json gpus = Json::array();
  for (auto& [address, gpu] : by_address) gpus.push_back(std::move(gpu));
  return gpus;
}

/// nvmlPciInfo_t: what NVML fills in for a device (NVML API reference, nvmlPciInfo_st).
struct PciInfo {
  std::array<char, 16> legacy_address;
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  std::array<char, 32> address;
};

/// NVML's own names and types, by hand: its header comes with CUDA. 0 is success.
void ask_nvml(const std::string& name, Json& facts) {
  const Library nvml{name};
  if (!nvml) return;
  auto* const init = nvml.find<int()>("nvmlInit_v2");
  auto* const shutdown = nvml.find<int()>("nvmlShutdown");
  auto* const version = nvml.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
  auto* const count = nvml.find<int(unsigned*)>("nvmlDeviceGetCount_v2");
  auto* const at = nvml.find<int(unsigned, void**)>("nvmlDeviceGetHandleByIndex_v2");
  auto* const called = nvml.find<int(void*, char*, unsigned)>("nvmlDeviceGetName");
  auto* const where = nvml.find<int(void*, PciInfo*)>("nvmlDeviceGetPciInfo_v3");
  if (!init || !shutdown || !version || !count || !at || !called || !where || init() != 0) return;
  std::array<char, 96> text{};
  unsigned gpus = 0;
  if (version(text.data(), text.size()) == 0) facts["gpu_driver"] = text.data();
  if (count(&gpus) != 0) gpus = 0;
  for (unsigned i = 0; i < gpus; ++i) {
    void* device = nullptr;
    PciInfo pci{};
    if (at(i, &device) != 0) continue;
    Json gpu = {{"pci", nullptr}, {"name", nullptr}};
    if (where(device, &pci) == 0) gpu["pci"] = pci.address.data();
    if (called(device, text.data(), text.size()) == 0) gpu["name"] = text.data();
    facts["gpus"].push_back(std::move(gpu));
  }
  shutdown();
}

/// NCCL states 2.18.3 as 21803, and 2.8.3 as 2803 (nccl.h, NCCL_VERSION).
Json nccl_version(const std::string& name) {
  const Library nccl{name};
  int code = 0;
  auto* const version = nccl ? nccl.find<int(int*)>("ncclGetVersion") : nullptr;
  if (version == nullptr || version(&code) != 0) return nullptr;
  return code < 10'000 ? fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100)
                       : fmt::format("{}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
}

}  // namespace

Json gpu_facts(const FactSources& sources) {
  Json facts = {{"gpus", gpus_of_proc(sources.root)}, {"gpu_driver", nullptr}, {"nccl", nullptr}};
  if (const auto driver = driver_of_proc(sources.root)) facts["gpu_driver"] = *driver;
  if (facts["gpus"].empty()) ask_nvml(sources.nvml, facts);
  if (!facts["gpus"].empty()) facts["nccl"] = nccl_version(sources.nccl);
  return facts;
}

}  // namespace longhaul::harness
