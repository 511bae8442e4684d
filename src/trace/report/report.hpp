#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/statistics/sample.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

/// Where the idle time of devices went, by walking the rows (docs/metrics.md). ns, summed over
/// devices; the parts add up to the whole idle time, devices * makespan - busy.
struct IdleTime {
  std::int64_t dependency = 0;  ///< the block it waited for was not computed yet
  std::int64_t link_wait = 0;   ///< its input was on the wire (transfer and latency)
  std::int64_t link_busy = 0;   ///< its input waited for the link
  std::int64_t rendezvous = 0;  ///< its message waited for the other side to post (grouped)
  std::int64_t memory = 0;      ///< a forward was there to run, but the budget forbade it
  std::int64_t straggler = 0;   ///< of a dependency: by how much that block overran its plan
  std::int64_t collective = 0;  ///< waiting for data-parallel communication
  std::int64_t host_task = 0;   ///< waiting for a task of the host, or for a thread to take it
  std::int64_t copy = 0;        ///< likewise for a copy
  std::int64_t prefill = 0;     ///< waiting for the end of a prefill on its device
  std::int64_t drained = 0;     ///< after its last block
  [[nodiscard]] std::int64_t total() const;
};
/// Names and members in report order, for tables and JSON.
struct IdlePart {
  const char* name;
  std::int64_t IdleTime::*member;
  /// Only plans with tasks beside blocks have it: where it is 0 it is left out.
  bool of_tasks = false;
};
[[nodiscard]] std::span<const IdlePart> idle_parts();

/// The tasks of one kind in an iteration, on all ranks.
struct TaskUse {
  std::int64_t tasks = 0;
  std::int64_t busy_ns = 0;  ///< during which a rank runs one at least, summed over ranks
  std::int64_t work_ns = 0;  ///< sum of their times: several threads work at a time
  friend bool operator==(const TaskUse&, const TaskUse&) = default;
};

/// Sums over the messages of one leg in an iteration; each counts once, at its sender.
struct LegUse {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  std::int64_t busy_ns = 0;  ///< sum of their transfers
};

/// Bytes that an iteration sends from one datacenter to another, or inside one.
struct Traffic {
  std::string from, to;
  std::int64_t message_bytes = 0;        ///< of activations and gradients, each leg of its own
  std::int64_t data_parallel_bytes = 0;  ///< of collectives, on rings of their members by rank
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
/// Of the rows of one iteration: pairs that send anything, in the order of `datacenters`, which the
/// rows name. docs/metrics.md.
[[nodiscard]] std::vector<Traffic> traffic_of(std::span<const TimelineRow> rows,
                                              std::span<const std::string> datacenters);

/// Metrics of one iteration of one schedule. Formulas: docs/metrics.md.
struct IterationReport {
  std::string schedule;
  int iteration = 0;
  /// First op on any rank to last block, task or collective on any rank.
  std::int64_t makespan_ns = 0;
  std::int64_t device_span_ns = 0;   ///< largest, over devices, of first F to last block
  std::vector<double> bubble_ratio;  ///< per rank: 1 - busy / makespan
  std::vector<std::int64_t> peak_activation_bytes;  ///< per rank
  IdleTime idle;
  std::array<TaskUse, kCountOf<TaskKind>> tasks{};  ///< index: TaskKind
  std::array<LegUse, kCountOf<MessageLeg>>
      legs{};                    ///< index: MessageLeg; those but `whole` are relayed
  std::int64_t wan_busy_ns = 0;  ///< transfers between datacenters, whole or in pieces
  std::vector<Traffic> traffic;  ///< by pair of datacenters
  int wan_crossings_on_critical_path = 0;
  /// Share of the time of data-parallel communication during which its device computes; nullopt
  /// where no collective takes time.
  std::optional<double> dp_overlap;
};

/// One position on the critical path, in order of time.
struct PathStep {
  std::int64_t op = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  bool crosses_datacenters = false;  ///< an arrival from another datacenter
};

/// The iterations that a timeline holds, in its order.
[[nodiscard]] std::vector<IterationKey> iterations_of(const Timeline& timeline);
/// Rows of one (schedule, iteration), ordered by op id; empty if there is none.
[[nodiscard]] std::span<const TimelineRow> rows_of(const Timeline& timeline, int schedule,
                                                   int iteration);
/// Follows bound_by back from the op that ends last (ties: lower op id) to the start.
[[nodiscard]] std::vector<PathStep> critical_path(std::span<const TimelineRow> rows);
/// `activation_budget_bytes` 0: no memory category.
[[nodiscard]] IdleTime attribute_idle(std::span<const TimelineRow> rows,
                                      std::int64_t activation_budget_bytes);
[[nodiscard]] IterationReport report_iteration(const Timeline& timeline, int schedule,
                                               int iteration, std::int64_t activation_budget_bytes);

}  // namespace longhaul::trace
