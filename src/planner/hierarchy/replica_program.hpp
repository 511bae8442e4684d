#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// When parts of one replica's pipeline are over.
struct ReplicaTimes {
  std::vector<Duration> gradients;  ///< by chunk: its last gradient is there
  std::vector<Duration> blocks;     ///< by device: its last block has ended
  std::vector<Duration> all;        ///< by device: and the messages that it sends and takes
};

/// The blocks and messages of one replica in an order in which each comes after those that it waits
/// for: an op list that all replicas share which have the same costs, microbatches and links. Links
/// are of the ordered pair of devices alone, so that the times of a block and a message follow from
/// those before it on its device or way, as the simulator has them.
class ReplicaProgram {
public:
  /// `alone` has one replica of one rank a stage. The schedule is valid there, has one copy of the
  /// model and shares no link.
  ReplicaProgram(const Schedule& schedule, const Scenario& alone);

  /// `gates`, by chunk: its first F begins no earlier. Overwrites `times`.
  void play(std::span<const Duration> gates, ReplicaTimes& times) const;

  [[nodiscard]] std::int64_t blocks() const { return std::ssize(steps_); }
  [[nodiscard]] std::int64_t messages() const { return std::ssize(ways_); }
  [[nodiscard]] Duration work() const { return work_; }  ///< of all blocks together
  /// Of each chunk, the place of its first F and of its last gradient in its device's row.
  [[nodiscard]] const std::vector<std::int32_t>& first_forward() const { return first_forward_; }
  [[nodiscard]] const std::vector<std::int32_t>& last_gradient() const { return last_gradient_; }

private:
  struct Step {
    Duration duration{};
    std::int32_t device = 0;
    std::int32_t input = -1, output = -1;   ///< messages; -1: none
    std::int32_t gate = -1, gradient = -1;  ///< chunk that it begins, or whose last gradient it is
  };
  struct Way {
    Duration transfer{}, latency{};
    std::int32_t channel = 0, from = 0, to = 0;
  };
  void find_ends(const Schedule& schedule);

  std::vector<Step> steps_;
  std::vector<Way> ways_;  ///< by message
  std::vector<std::int32_t> first_forward_, last_gradient_;
  int devices_ = 0, channels_ = 0;
  Duration work_{};
};

}  // namespace longhaul::planner
