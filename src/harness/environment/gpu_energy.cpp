#include "harness/environment/gpu_energy.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <dlfcn.h>

namespace longhaul::harness {

/// NVML of the driver, loaded when it is there; its header comes with CUDA, which this may be built
/// without.
class Nvml {
public:
  /// `library`: libnvidia-ml.so.1, or an emulator of it.
  explicit Nvml(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] bool is_here() const;
  /// Since the driver was loaded, in mJ. nullopt: this GPU does not count it, or is not there.
  /// `uuid` as nvidia-smi writes it: "GPU-...".
  [[nodiscard]] std::optional<std::uint64_t> energy_mj(const std::string& uuid) const;
  /// Now, in mW.
  [[nodiscard]] std::optional<unsigned> power_mw(const std::string& uuid) const;

private:
  struct Functions;
  std::unique_ptr<Functions> functions_;
};

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
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kEvery{50};

}  // namespace

struct GpuEnergy::Sampler {
  Sampler(const std::string& gpu, const std::string& library)
      : uuid{gpu}, nvml{library}, counted{nvml.energy_mj(uuid)}, power{nvml.power_mw(uuid)} {
    if (!counted && power)
      thread = std::jthread{[this](const std::stop_token& stop) { work(stop); }};
  }

  void work(const std::stop_token& stop) {
    std::unique_lock lock{mutex};
    Clock::time_point since = Clock::now();
    while (!stop.stop_requested()) {
      woken.wait_for(lock, stop, kEvery, [] { return false; });
      const Clock::time_point at = Clock::now();
      sampled += *power * 1e-3 * std::chrono::duration<double>{at - since}.count();
      since = at;
      power = nvml.power_mw(uuid).value_or(*power);
    }
  }

  std::string uuid;
  Nvml nvml;
  std::optional<std::uint64_t> counted;  ///< at the begin, in mJ
  std::optional<unsigned> power;         ///< the last sample, in mW
  double sampled = 0;                    ///< in J
  mutable std::mutex mutex;              ///< of the two above
  std::condition_variable_any woken;
  std::jthread thread;  ///< last: it uses the others
};

GpuEnergy::GpuEnergy(const std::string& uuid, const std::string& nvml)
    : sampler_{std::make_unique<Sampler>(uuid, nvml)} {}

GpuEnergy::~GpuEnergy() = default;

std::optional<double> GpuEnergy::joules() const {
  if (sampler_->counted) {
    const auto now = sampler_->nvml.energy_mj(sampler_->uuid);
    if (!now) return std::nullopt;
    return static_cast<double>(*now - *sampler_->counted) * 1e-3;
  }
  const std::scoped_lock lock{sampler_->mutex};
  if (!sampler_->power) return std::nullopt;
  return sampler_->sampled;
}

const char* GpuEnergy::source() const {
  if (sampler_->counted) return "counter";
  const std::scoped_lock lock{sampler_->mutex};
  return sampler_->power ? "power samples" : "none";
}

}  // namespace longhaul::harness
