#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "planner/cluster/cluster.hpp"

namespace longhaul::planner {

/// GPUs over slots [begin, end).
struct GpuSpan {
  std::int64_t begin = 0, end = 0;
  int gpus = 0;
  int choice = -1;  ///< the rate that they give: of the job's
};

/// What is planned of a job: spans that do not overlap, ascending.
using GpuPlan = std::vector<GpuSpan>;

/// What a job may hold: rates by rising numbers of GPUs, and where the GPUs of each lie (empty: in
/// the one pool, and rates rise, too).
struct GpuChoices {
  std::span<const GpuRate> rates;
  std::span<const SiteGpus> places{};
};

/// Has each site the GPUs of the place?
[[nodiscard]] bool lies_within(const SiteGpus& place, std::span<const int> sites);

/// GPUs of a cluster's sites (of one: the pool) that are free in each slot from a first one on.
class FreeGpus {
public:
  FreeGpus(std::vector<int> sites, std::int64_t first, Duration slot);

  /// The least number of GPUs with which `iterations` end before the deadline, where each slot
  /// holds the fastest choice that is neither above that number nor above what is free, from the
  /// deadline backwards (progressive filling). nullopt: no number does.
  [[nodiscard]] std::optional<GpuPlan> fill(const GpuChoices& choices, double iterations,
                                            Duration deadline) const;

  /// Must be free. `plan`: of fill() with these choices.
  void take(const GpuPlan& plan, const GpuChoices& choices);

private:
  [[nodiscard]] std::span<const int> free_in(std::size_t part) const {
    return {free_.data() + part * sites_, sites_};
  }
  /// The fastest that fits; of equally fast ones that of fewest GPUs. -1: none does.
  [[nodiscard]] int fastest(const GpuChoices& choices, int most, std::span<const int> free) const;
  [[nodiscard]] std::optional<GpuPlan> fill_with(int most, const GpuChoices& choices,
                                                 double iterations, Duration deadline) const;
  std::size_t cut(std::int64_t slot);

  Duration slot_;
  std::size_t sites_;
  std::vector<std::int64_t> begins_;  ///< of the parts; each lasts to the next, the last for ever
  std::vector<int> free_;             ///< index: part x sites + site
};

}  // namespace longhaul::planner
