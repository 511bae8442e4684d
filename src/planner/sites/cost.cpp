#include "planner/sites/cost.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::planner {
namespace {

constexpr double kNanosecondsPerHour = 3.6e12;

/// $ an hour of all GPUs that are used; nullopt where one has no price.
std::optional<double> gpu_dollars_per_hour(const GpuInventory& supply, const SiteLayout& layout) {
  double dollars = 0;
  for (const DatacenterStages& share : layout.way) {
    const auto& price = supply.scenario().datacenters[index(share.datacenter)].price;
    if (!price) return std::nullopt;
    dollars += *price * share.stages * layout.replicas() * supply.gpus_of_stage();
  }
  return dollars;
}

void add_money(const GpuInventory& supply, const SiteLayout& layout, double hours, double samples,
               SiteFigures& figures) {
  figures.egress_dollars =
      egress_dollars_of_pipeline(supply, layout.way) * static_cast<double>(layout.replicas());
  figures.gpu_dollars_per_hour = gpu_dollars_per_hour(supply, layout);
  figures.cost = figures.gpu_hours / samples;
  if (!figures.gpu_dollars_per_hour) return;
  const double dollars = *figures.gpu_dollars_per_hour * hours + figures.egress_dollars;
  figures.dollars = dollars;
  figures.dollars_per_hour = dollars / hours;
  figures.dollars_per_sample = dollars / samples;
  if (supply.priced()) figures.cost = dollars / samples;
  if (supply.scenario().model)
    figures.dollars_per_million_tokens =
        dollars / samples / supply.scenario().model->sequence_length * 1e6;
}

}  // namespace

double samples_of_pipeline(const GpuInventory& supply) {
  const auto& model = supply.scenario().model;
  return static_cast<double>(supply.scenario().parallel.microbatches) *
         (model ? model->microbatch_size : 1);
}

std::vector<double> egress_of_pipeline(const GpuInventory& supply, const StagePlacement& way) {
  std::vector<double> bytes(way.size(), 0);
  StageId stage{};
  for (std::size_t i = 0; i + 1 < way.size(); ++i) {
    stage += way[i].stages;
    const double crossing = static_cast<double>(supply.costs().message[at(stage - 1)].count()) *
                            supply.scenario().parallel.microbatches;
    bytes[i] += crossing;
    bytes[i + 1] += crossing;
  }
  return bytes;
}

double egress_dollars_of_pipeline(const GpuInventory& supply, const StagePlacement& way) {
  const std::vector<double> bytes = egress_of_pipeline(supply, way);
  double dollars = 0;
  for (std::size_t i = 0; i < way.size(); ++i)
    dollars += bytes[i] / 1e9 *
               supply.scenario().datacenters[index(way[i].datacenter)].egress_price.value_or(0);
  return dollars;
}

SiteFigures figures_of(const GpuInventory& supply, const SiteLayout& layout,
                       const SiteTimes& times) {
  SiteFigures figures;
  const auto nanoseconds = static_cast<double>(times.iteration().count());
  const double replicas = layout.replicas();
  const double samples = replicas * samples_of_pipeline(supply);
  const double hours = nanoseconds / kNanosecondsPerHour;
  figures.gpus_used = supply.stages() * layout.replicas() * supply.gpus_of_stage();
  figures.iterations_per_second = replicas / (nanoseconds * 1e-9);
  figures.samples_per_second = samples / (nanoseconds * 1e-9);
  if (supply.scenario().model)
    figures.tokens_per_second =
        figures.samples_per_second * supply.scenario().model->sequence_length;
  figures.utilisation = times.busy * static_cast<double>(times.pipeline.count()) / nanoseconds;
  figures.gpu_hours = figures.gpus_used * hours;
  for (const double bytes : egress_of_pipeline(supply, layout.way))
    figures.egress_bytes += bytes * replicas;
  add_money(supply, layout, hours, samples, figures);
  return figures;
}

}  // namespace longhaul::planner
