#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/listed_enum.hpp"
#include "base/units.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::planner {

/// How many stages of every pipeline lie in a datacenter.
struct DatacenterStages {
  DatacenterId datacenter{};
  int stages = 0;
  friend bool operator==(const DatacenterStages&, const DatacenterStages&) = default;
};

/// The placement of a pipeline from its first stage to its last: whole datacenters, each at most
/// once, none with no stage.
using StagePlacement = std::vector<DatacenterStages>;

/// Which datacenters do what: D DP-cells of C pipelines (Atlas section 4.5), all on one placement.
struct SiteLayout {
  StagePlacement placement;
  int cells = 1;      ///< D
  int pipelines = 1;  ///< C, of a cell
  [[nodiscard]] int replicas() const { return cells * pipelines; }
  friend bool operator==(const SiteLayout&, const SiteLayout&) = default;
};

/// Times of an iteration of a layout (Atlas algorithm 1).
struct SiteTimes {
  Duration pipeline{};    ///< PP_time: one DP-cell, simulated; cells are equal and independent
  Duration all_reduce{};  ///< of the gradients, inside each datacenter, after it
  double busy = 0;        ///< share of `pipeline` in which a GPU computes, mean over GPUs
  [[nodiscard]] Duration iteration() const { return pipeline + all_reduce; }
};

/// The scenario as the site planner reads it. Where stages lie in its file does not matter.
class GpuInventory {
public:
  /// Throws Error where a datacenter does not say how many GPUs it has. `scenario` must outlive it.
  explicit GpuInventory(const Scenario& scenario);

  [[nodiscard]] const Scenario& scenario() const { return scenario_; }
  /// Costs of a device of speed 1.
  [[nodiscard]] const Costs& costs() const { return costs_; }
  [[nodiscard]] int stages() const { return scenario_.parallel.stages; }  ///< P
  [[nodiscard]] int datacenters() const { return static_cast<int>(gpus_.size()); }
  [[nodiscard]] int gpus(DatacenterId of) const { return gpus_[index(of)]; }
  /// GPUs of a stage of one pipeline: tensor parallelism.
  [[nodiscard]] int gpus_of_stage() const { return gpus_of_stage_; }
  /// PP_GPU: stages that the datacenter can hold of each of so many pipelines.
  [[nodiscard]] int stages_for(DatacenterId of, int replicas) const {
    return static_cast<int>(gpus(of) / (static_cast<std::int64_t>(replicas) * gpus_of_stage_));
  }
  /// D_max = floor(all GPUs / (C P)).
  [[nodiscard]] int most_cells(int pipelines) const;
  [[nodiscard]] const std::string& name(DatacenterId of) const {
    return scenario_.datacenters[index(of)].name;
  }
  /// Has every datacenter with GPUs a price, so that plans compare by $?
  [[nodiscard]] bool priced() const;

private:
  const Scenario& scenario_;
  Costs costs_;
  std::vector<int> gpus_;
  int gpus_of_stage_ = 1;
};

/// In which order algorithm 1 takes the datacenters: the one with the most GPUs first; the cheapest
/// GPU first, those without a price last; from the largest, each time to the nearest that is left
/// (latency).
#define LONGHAUL_SITE_ORDERS(X) \
  X(availability, "availability") X(price, "price") X(distance, "distance")
LONGHAUL_LISTED_ENUM(SiteOrder, LONGHAUL_SITE_ORDERS);

/// All datacenters with at least one GPU. Ties: more GPUs, then the order of the file.
[[nodiscard]] std::vector<DatacenterId> ordered_datacenters(const GpuInventory& inventory,
                                                            SiteOrder order);

/// Lines 2 to 10 of algorithm 1: each datacenter in turn takes all the stages it can hold. nullopt
/// where they cannot hold all.
[[nodiscard]] std::optional<StagePlacement> greedy_placement(const GpuInventory& inventory,
                                                             std::span<const DatacenterId> order,
                                                             int replicas);

/// Rate of a message between nodes of two datacenters: the smallest of link and interfaces.
/// nullopt where there is no link.
[[nodiscard]] std::optional<Bandwidth> node_rate(const Scenario& scenario, DatacenterId from,
                                                 DatacenterId to);

/// C: parallel.cell where given; otherwise the largest transfer over forward time of any stage on
/// any link between neighbours of the order, rounded up (Atlas section 4.4); 1 to 255.
[[nodiscard]] int cell_size(const GpuInventory& inventory, std::span<const DatacenterId> order);

/// The values of C that a plan in this order may have, the preferred first: cell_size(), that of
/// the order's beginnings (a far site may ask for larger cells than all GPUs make), and 1. Where
/// parallel.cell is given it alone.
[[nodiscard]] std::vector<int> cell_sizes(const GpuInventory& inventory,
                                          std::span<const DatacenterId> order);
/// Those of any order: of all pairs of the scenario's datacenters, with GPUs or not, and 1, so that
/// more GPUs take none away; of more than 4 the smallest, the largest and two between them.
[[nodiscard]] std::vector<int> cell_sizes(const GpuInventory& inventory);

/// "west 20 > east 40".
[[nodiscard]] std::string to_text(const GpuInventory& inventory, const StagePlacement& placement);

}  // namespace longhaul::planner
