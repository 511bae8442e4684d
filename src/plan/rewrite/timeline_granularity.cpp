#include "plan/rewrite/timeline_granularity.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "plan/operators/operator_lists_builder.hpp"
#include "plan/rewrite/operator_rows.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::plan {
namespace {

/// New ids of the ops of one iteration.
using NewIds = std::vector<std::pair<std::int64_t, std::int64_t>>;  // (old, new), ascending

void rename_bounds(std::span<TimelineRow> rows, const NewIds& ids) {
  for (TimelineRow& row : rows) {
    if (row.bound_by < 0) continue;
    const auto at = std::ranges::lower_bound(ids, row.bound_by, {}, &NewIds::value_type::first);
    if (at != ids.end() && at->first == row.bound_by) row.bound_by = at->second;
  }
}

/// The rows of the iteration that begins at `first`.
std::span<const TimelineRow> iteration_at(const std::vector<TimelineRow>& rows, std::size_t first) {
  std::size_t last = first;
  while (last < rows.size() && rows[last].schedule == rows[first].schedule &&
         rows[last].iteration == rows[first].iteration)
    ++last;
  return std::span{rows}.subspan(first, last - first);
}

bool is_operator(const TimelineRow& row) { return is_compute(row.kind) && row.operator_index >= 0; }

/// Does an operator go on with the block of the row before it?
bool goes_on(const TimelineRow& before, const TimelineRow& row) {
  return is_operator(before) && is_operator(row) && before.rank == row.rank &&
         before.lane == row.lane && before.kind == row.kind && before.chunk == row.chunk &&
         before.microbatch == row.microbatch && before.part == row.part;
}

/// Joins the rows of one iteration.
std::optional<Refusal> fold_iteration(std::span<const TimelineRow> rows,
                                      std::vector<TimelineRow>& to) {
  const std::size_t first = to.size();
  NewIds ids;
  std::vector<std::int64_t> inside;  // ops that are not the last of their blocks
  std::int64_t next = rows.front().op;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TimelineRow& row = rows[i];
    if (i > 0 && goes_on(rows[i - 1], row)) {
      TimelineRow& block = to.back();
      if (row.start_ns != rows[i - 1].end_ns)
        return refused(
            "op {} begins {} ns after the one before it in its block (something overlaps inside). "
            "Use --granularity operator.",
            row.op, row.start_ns - rows[i - 1].end_ns);
      block.end_ns = row.end_ns;
      block.planned_ns += row.planned_ns;
      block.size_bytes += row.size_bytes;
      inside.push_back(rows[i - 1].op);
    } else {
      to.push_back(row);
      to.back().op = next++;
      if (is_operator(row)) {
        to.back().operator_index = to.back().layer = -1;
        to.back().slice = 0;
        to.back().slices = 1;
      }
    }
    ids.emplace_back(row.op, to.back().op);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool same_block = i > 0 && goes_on(rows[i - 1], rows[i]);
    if (!same_block && std::ranges::binary_search(inside, rows[i].bound_by))
      return refused(
          "op {} waited for op {}, which is not the last of its block (something overlaps inside). "
          "Use --granularity operator.",
          rows[i].op, rows[i].bound_by);
  }
  rename_bounds(std::span{to}.subspan(first), ids);
  return std::nullopt;
}

/// Where the rows of an iteration have their chunks; the rest of a schedule is left out.
Result<Schedule> layout_of(std::span<const TimelineRow> rows, const Scenario& scenario) {
  Schedule layout;
  std::map<std::int32_t, std::pair<DeviceId, std::int32_t>> chunks;  // device, first microbatch
  for (const TimelineRow& row : rows) {
    if (!is_compute(row.kind) || row.microbatch < 0) continue;
    layout.devices = std::max(layout.devices, row.device + 1);
    layout.microbatches = std::max(layout.microbatches, row.microbatch + 1);
    const auto [at, is_new] = chunks.try_emplace(row.chunk, DeviceId{row.device}, row.microbatch);
    if (!is_new) at->second.second = std::min(at->second.second, row.microbatch);
  }
  for (const auto& [chunk, place] : chunks) {
    if (chunk != layout.chunks++)
      return refused("chunk {} of the trace has no blocks. Export with --granularity block.",
                     layout.chunks - 1);
    layout.device_of_chunk.push_back(place.first);
    layout.copies = std::max(layout.copies, place.second + 1);
  }
  if (layout.devices != scenario.parallel.stages)
    return refused(
        "the trace has {} devices, and its scenario {} stages. Export with --granularity block.",
        layout.devices, scenario.parallel.stages);
  return layout;
}

/// Cuts the rows of iterations of one schedule.
class Unfolding {
public:
  Unfolding(const Schedule& layout, const Scenario& scenario, Granularity below)
      : builder_{layout, scenario, below == Granularity::tasks ? Below::tasks : Below::operators} {}

  void add(std::span<const TimelineRow> rows, Timeline& to) {
    const NewIds last = last_ids(rows);
    trace::NameTable names{to.operators};
    std::int64_t next = rows.front().op;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      TimelineRow row = rows[i];
      const ChunkId chunk{row.chunk};
      row.op = next;
      next = last[i].second + 1;
      rename_bounds({&row, 1}, last);
      const std::span<const OperatorStep> steps = steps_of(rows[i]);
      if (steps.empty()) {
        to.rows.push_back(row);
        continue;
      }
      add_operator_rows(to.rows, row, steps, [&](TimelineRow& each, const OperatorStep& step) {
        each.operator_index = names.index_of(builder_.lists().names[step.name]);
        each.layer = builder_.lists().layer_of(step, chunk);
        each.slice = step.slice;
        each.slices = step.slices;
      });
    }
  }

private:
  /// (id, id of its last operator) of each row.
  [[nodiscard]] NewIds last_ids(std::span<const TimelineRow> rows) {
    NewIds ids;
    std::int64_t next = rows.front().op;
    for (const TimelineRow& row : rows) {
      if (is_block(row)) (void)builder_.list_of(block_of(row));
      next += std::max<std::int64_t>(1, std::ssize(steps_of(row)));
      ids.emplace_back(row.op, next - 1);
    }
    return ids;
  }

  /// Its list has been made; empty where it has none.
  [[nodiscard]] std::span<const OperatorStep> steps_of(const TimelineRow& row) {
    return is_block(row) ? builder_.lists().list(builder_.list_of(block_of(row)))
                         : std::span<const OperatorStep>{};
  }

  [[nodiscard]] static bool is_block(const TimelineRow& row) {
    return is_compute(row.kind) && row.operator_index < 0 && row.microbatch >= 0;
  }

  [[nodiscard]] static Block block_of(const TimelineRow& row) {
    return {static_cast<BlockKind>(row.kind), static_cast<std::uint8_t>(row.part),
            static_cast<std::uint8_t>(row.parts), ChunkId{row.chunk}, MicrobatchId{row.microbatch}};
  }

  OperatorListsBuilder builder_;
};

}  // namespace

Result<Timeline> folded(const Timeline& timeline) {
  Timeline result = timeline.without_rows();
  for (std::size_t first = 0; first < timeline.rows.size();) {
    const auto rows = iteration_at(timeline.rows, first);
    if (auto why = fold_iteration(rows, result.rows)) return *std::move(why);
    first += rows.size();
  }
  return result;
}

Result<Timeline> unfolded(const Timeline& timeline, const Scenario& scenario, Granularity below) {
  if (!scenario.operators.known())
    return refused(
        "the scenario of the trace does not say which operators its blocks have (it has neither "
        "[model] nor [[operator]]). Export with --granularity block.");
  if (scenario.overlap.largest() > 1)
    return refused(
        "the blocks of the trace slow beside messages ([overlap]), and do not say which of their "
        "operators did. Simulate with --granularity operator, or export with --granularity block.");
  Timeline result = timeline.without_rows();
  std::map<std::int32_t, Unfolding> of_schedule;
  for (std::size_t first = 0; first < timeline.rows.size();) {
    const auto rows = iteration_at(timeline.rows, first);
    auto known = of_schedule.find(rows.front().schedule);
    if (known == of_schedule.end()) {
      const Result<Schedule> layout = layout_of(rows, scenario);
      if (!layout) return layout.refusal();
      known = of_schedule
                  .emplace(std::piecewise_construct, std::tuple{rows.front().schedule},
                           std::forward_as_tuple(*layout, scenario, below))
                  .first;
    }
    known->second.add(rows, result);
    first += rows.size();
  }
  return result;
}

}  // namespace longhaul::plan
