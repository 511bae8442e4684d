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
};

/// What is planned of a job: spans that do not overlap, ascending.
using GpuPlan = std::vector<GpuSpan>;

/// GPUs of a cluster that are free in each slot from a first one on.
class FreeGpus {
public:
  FreeGpus(int gpus, std::int64_t first, Duration slot);

  /// The least number of GPUs with which `iterations` end before the deadline, where each slot
  /// holds the largest of `rates` that is neither above that number nor above what is free, from
  /// the deadline backwards (progressive filling). `rates` rise. nullopt: no number does.
  [[nodiscard]] std::optional<GpuPlan> fill(std::span<const GpuRate> rates, double iterations,
                                            Duration deadline) const;

  void take(const GpuPlan& plan);  ///< must be free

private:
  /// Free GPUs from a slot on, up to the next part's; the last has no end.
  struct Part {
    std::int64_t begin;
    int gpus;
  };
  [[nodiscard]] std::optional<GpuPlan> fill_with(int most, std::span<const GpuRate> rates,
                                                 double iterations, Duration deadline) const;
  std::size_t cut(std::int64_t slot);

  Duration slot_;
  std::vector<Part> parts_;
};

}  // namespace longhaul::planner
