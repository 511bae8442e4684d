#include "planner/sites/cost.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::planner {
namespace {

constexpr double kNanosecondsPerHour = 3.6e12;

/// $ an hour of all GPUs that are used; nullopt where one has no price.
std::optional<double> gpu_dollars_per_hour(const GpuInventory& inventory,
                                           const SiteLayout& layout) {
  double dollars = 0;
  for (const DatacenterStages& share : layout.placement) {
    const auto& price = inventory.scenario().datacenters[index(share.datacenter)].price;
    if (!price) return std::nullopt;
    dollars += *price * share.stages * layout.replicas() * inventory.gpus_of_stage();
  }
  return dollars;
}

void add_money(const GpuInventory& inventory, const SiteLayout& layout, double hours,
               double samples, SiteFigures& figures) {
  figures.egress_dollars = egress_dollars_of_pipeline(inventory, layout.placement) *
                           static_cast<double>(layout.replicas());
  figures.gpu_dollars_per_hour = gpu_dollars_per_hour(inventory, layout);
  figures.cost = figures.gpu_hours / samples;
  if (!figures.gpu_dollars_per_hour) return;
  const double dollars = *figures.gpu_dollars_per_hour * hours + figures.egress_dollars;
  figures.dollars = dollars;
  figures.dollars_per_hour = dollars / hours;
  figures.dollars_per_sample = dollars / samples;
  if (inventory.priced()) figures.cost = dollars / samples;
  if (inventory.scenario().model)
    figures.dollars_per_million_tokens =
        dollars / samples / inventory.scenario().model->sequence_length * 1e6;
}

}  // namespace

double samples_of_pipeline(const GpuInventory& inventory) {
  const auto& model = inventory.scenario().model;
  return static_cast<double>(inventory.scenario().parallel.microbatches) *
         (model ? model->microbatch_size : 1);
}

std::vector<double> egress_of_pipeline(const GpuInventory& inventory,
                                       const StagePlacement& placement) {
  std::vector<double> bytes(placement.size(), 0);
  StageId stage{};
  for (std::size_t i = 0; i + 1 < placement.size(); ++i) {
    stage += placement[i].stages;
    const double crossing = static_cast<double>(inventory.costs().message[at(stage - 1)].count()) *
                            inventory.scenario().parallel.microbatches;
    bytes[i] += crossing;
    bytes[i + 1] += crossing;
  }
  return bytes;
}

double egress_dollars_of(double bytes, const Datacenter& from) {
  constexpr double kBytesOfPrice = 1e9;
  return bytes / kBytesOfPrice * from.egress_price.value_or(0);
}

double egress_dollars_of_pipeline(const GpuInventory& inventory, const StagePlacement& placement) {
  const std::vector<double> bytes = egress_of_pipeline(inventory, placement);
  double dollars = 0;
  for (std::size_t i = 0; i < placement.size(); ++i)
    dollars += egress_dollars_of(bytes[i],
                                 inventory.scenario().datacenters[index(placement[i].datacenter)]);
  return dollars;
}

SiteFigures figures_of(const GpuInventory& inventory, const SiteLayout& layout,
                       const SiteTimes& times) {
  SiteFigures figures;
  const auto nanoseconds = static_cast<double>(times.iteration().count());
  const double replicas = layout.replicas();
  const double samples = replicas * samples_of_pipeline(inventory);
  const double hours = nanoseconds / kNanosecondsPerHour;
  figures.gpus_used = inventory.stages() * layout.replicas() * inventory.gpus_of_stage();
  figures.iterations_per_second = replicas / (nanoseconds * 1e-9);
  figures.samples_per_second = samples / (nanoseconds * 1e-9);
  if (inventory.scenario().model)
    figures.tokens_per_second =
        figures.samples_per_second * inventory.scenario().model->sequence_length;
  figures.utilisation = times.busy * static_cast<double>(times.pipeline.count()) / nanoseconds;
  figures.gpu_hours = figures.gpus_used * hours;
  for (const double bytes : egress_of_pipeline(inventory, layout.placement))
    figures.egress_bytes += bytes * replicas;
  add_money(inventory, layout, hours, samples, figures);
  return figures;
}

}  // namespace longhaul::planner
