#include "harness/environment/nvml.hpp"

#include <dlfcn.h>

namespace longhaul::bench {

/// Names and types of NVML's API reference. 0 is success.
struct Nvml::Functions {
  explicit Functions(const std::string& name) : library{dlopen(name.c_str(), RTLD_NOW)} {
    if (library == nullptr) return;
    find(init, "nvmlInit_v2");
    find(shutdown, "nvmlShutdown");
    find(by_uuid, "nvmlDeviceGetHandleByUUID");
    find(energy, "nvmlDeviceGetTotalEnergyConsumption");
    find(power, "nvmlDeviceGetPowerUsage");
    ready = init != nullptr && shutdown != nullptr && by_uuid != nullptr && init() == 0;
  }
  ~Functions() {
    if (ready) shutdown();
    if (library != nullptr) dlclose(library);
  }
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(library, name));
  }
  [[nodiscard]] void* device(const std::string& uuid) const {
    void* handle = nullptr;
    return ready && by_uuid(uuid.c_str(), &handle) == 0 ? handle : nullptr;
  }

  void* library;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_uuid)(const char*, void**) = nullptr;
  int (*energy)(void*, unsigned long long*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;
  bool ready = false;
};

Nvml::Nvml(const std::string& library) : functions_{std::make_unique<Functions>(library)} {}

Nvml::~Nvml() = default;

bool Nvml::is_here() const { return functions_->ready; }

std::optional<std::uint64_t> Nvml::energy_mj(const std::string& uuid) const {
  void* const device = functions_->device(uuid);
  unsigned long long millijoules = 0;
  if (device == nullptr || functions_->energy == nullptr ||
      functions_->energy(device, &millijoules) != 0)
    return std::nullopt;
  return millijoules;
}

std::optional<unsigned> Nvml::power_mw(const std::string& uuid) const {
  void* const device = functions_->device(uuid);
  unsigned milliwatts = 0;
  if (device == nullptr || functions_->power == nullptr ||
      functions_->power(device, &milliwatts) != 0)
    return std::nullopt;
  return milliwatts;
}

}  // namespace longhaul::bench
