#include "harness/environment/gpu_energy.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "harness/environment/nvml.hpp"

namespace longhaul::bench {
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

}  // namespace longhaul::bench
