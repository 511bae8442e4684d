#include "harness/ranks/gpu_report.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cuda/accelerator.hpp"
#include "device/cuda/factories.hpp"
#include "harness/environment/facts.hpp"
#include "harness/ranks/gather_texts.hpp"
#include "host/machine.hpp"
#include "host/rank_accelerator.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

cuda::AcceleratorInfo info_of(int index) {
  return cuda::accelerators()[static_cast<std::size_t>(index)];
}

ordered_json entry_of(int index, const GpuEnergy& energy) {
  const cuda::AcceleratorInfo info = info_of(index);
  const device::AcceleratorClock clock = device::accelerator_clock(index);
  const auto joules = energy.joules();
  return {{"host", host::host_name()},
          {"uuid", info.uuid},
          {"name", info.name},
          {"cuda_driver", info.driver},
          {"memory_bytes", info.memory_bytes},
          {"energy_joules", joules ? ordered_json(*joules) : ordered_json(nullptr)},
          {"energy_source", energy.source()},
          {"clock_error_ns", clock.error.count()},
          {"clock_largest_error_ns", clock.largest_error.count()},
          {"clock_tick_ns", clock.tick.count()},
          {"clock_drift_ppm", 1e6 * clock.drift}};
}

}  // namespace

GpuReport::GpuReport(const engine::Ranks& ranks, DeviceKind kind) : ranks_{ranks} {
  if (kind == DeviceKind::cpu) return;
  index_ = host::accelerator_of(ranks.host_ranks());
  energy_ = std::make_unique<GpuEnergy>(info_of(*index_).uuid, FactSources{}.nvml);
}

/// Ranks that share a GPU have all counted it; the first of them says it.
void GpuReport::add_to(nlohmann::json& environment) const {
  ordered_json mine;
  if (index_) mine = entry_of(*index_, *energy_);
  const auto texts = gather_texts(ranks_.world(), mine.dump());
  ordered_json gpus;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    ordered_json entry = ordered_json::parse(texts[rank]);
    if (entry.is_null()) continue;
    const auto same = std::ranges::find_if(gpus, [&](const ordered_json& gpu) {
      return gpu["host"] == entry["host"] && gpu["uuid"] == entry["uuid"];
    });
    if (same == gpus.end()) {
      entry["ranks"] = ordered_json::array({rank});
      gpus.push_back(std::move(entry));
    } else {
      (*same)["ranks"].push_back(rank);
    }
  }
  if (!gpus.empty()) environment["accelerators"] = gpus;
}

}  // namespace longhaul::harness
