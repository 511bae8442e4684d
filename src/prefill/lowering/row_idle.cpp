#include "prefill/lowering/row_idle.hpp"

#include <algorithm>
#include <set>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

using Spans = std::vector<std::vector<PrefillSpan>>;  ///< by GPU

/// When GPUs compute training's blocks, by start.
Spans block_spans(const PlayedRows& rows) {
  Spans spans(to_size(rows.gpus));
  for (std::size_t i = 0; i < rows.training.ops.size(); ++i) {
    if (rows.training.ops[i].kind != OpKind::compute) continue;
    const std::size_t rank = index(rows.training.rank_of(OpId{static_cast<std::uint32_t>(i)}));
    const OpTime& time = rows.results.times[index(rows.filled.training[i])];
    if (rank < spans.size() && time.end > time.start) spans[rank].push_back({time.start, time.end});
  }
  for (auto& own : spans) join_spans(own);
  return spans;
}

/// Between blocks, from the stretch's begin to its end.
IterationBubbles bubbles_between(const Spans& blocks, Duration wall) {
  IterationBubbles iteration;
  iteration.period = wall;
  iteration.gpus = static_cast<int>(blocks.size());
  for (std::size_t rank = 0; rank < blocks.size(); ++rank) {
    Duration free{};
    const auto add = [&](Duration until) {
      if (until > free)
        iteration.bubbles.push_back(
            {.rank = static_cast<std::int32_t>(rank), .start = free, .end = until});
    };
    for (const PrefillSpan& block : blocks[rank]) {
      iteration.busy += block.end - block.start;
      add(block.start);
      free = block.end;
    }
    add(wall);
  }
  return iteration;
}

/// What is known of stages that were placed: when they computed, declined or were late.
class StageRows {
public:
  StageRows(const PlayedRows& rows, const Spans& blocks, bool is_live)
      : rows_{rows}, blocks_{blocks}, is_live_{is_live}, known_(blocks.size()) {
    prefills_.resize(blocks.size());
    std::set<OpId> seen;  // prompts share passes
    const auto& stages = rows.filled.stages;
    for (std::size_t i = 0; i < stages.size(); ++i)
      if (seen.insert(stages[i].op).second) add(stages[i], before(i));
    for (auto& own : prefills_) join_spans(own);
    for (auto& own : known_) part(own);
  }
  [[nodiscard]] Spans take_prefills() { return std::move(prefills_); }
  [[nodiscard]] std::vector<std::vector<KnownIdle>> take_known() { return std::move(known_); }

private:
  [[nodiscard]] bool has_run(std::size_t op) const {
    return rows_.results.outcomes.empty() || longhaul::has_run(rows_.results.outcomes[op]);
  }
  /// When the stage before that one, of the same pass, has handed it over.
  [[nodiscard]] Duration before(std::size_t i) const {
    const PlacedStage& own = rows_.filled.stages[i].placed;
    if (own.stage == 0) return Duration::min();
    const OpTime& time = rows_.results.times[index(rows_.filled.stages[i - 1].op)];
    return time.end + rows_.served[rows_.decisions[own.decision].model].model.hop;
  }
  void add(const FilledStage& stage, Duration handed_over) {
    const PlacedStage& placed = stage.placed;
    const std::size_t rank = index(placed.rank);
    const auto know = [&](IdleCause cause, Duration from, Duration until) {
      if (until > from) known_[rank].push_back({from, until, cause});
    };
    if (!has_run(index(stage.first))) return know(IdleCause::declined, placed.start, placed.end());
    const Duration start = rows_.results.times[index(stage.first)].start;
    const Duration opened = opened_before(rank, start);
    if (is_live_) know(IdleCause::declined, placed.start, std::min(placed.end(), opened));
    know(IdleCause::signal, std::max({placed.start, opened, handed_over}), start);
    Duration last = start;
    for (std::size_t op = index(stage.first); op <= index(stage.op) && has_run(op); ++op) {
      const OpTime& time = rows_.results.times[op];
      know(IdleCause::signal, last, time.start);
      prefills_[rank].push_back({time.start, time.end});
      last = time.end;
    }
  }
  /// The end of the last block before.
  [[nodiscard]] Duration opened_before(std::size_t rank, Duration start) const {
    const auto after = std::ranges::upper_bound(blocks_[rank], start, {}, &PrefillSpan::end);
    return after == blocks_[rank].begin() ? Duration{} : std::prev(after)->end;
  }
  /// Each begins after the one before it has ended.
  static void part(std::vector<KnownIdle>& spans) {
    std::ranges::stable_sort(spans, {}, &KnownIdle::start);
    Duration until = Duration::min();
    for (KnownIdle& span : spans) {
      span.start = std::max(span.start, until);
      until = std::max(until, span.end);
    }
    std::erase_if(spans, [](const KnownIdle& span) { return span.end <= span.start; });
  }

  const PlayedRows& rows_;
  const Spans& blocks_;
  bool is_live_;
  Spans prefills_;
  std::vector<std::vector<KnownIdle>> known_;
};

}  // namespace

IdleTimes idle_of_rows(const PlayedRows& rows, const StretchDemand& demand) {
  Duration wall{};
  for (const OpId op : rows.filled.training)
    wall = std::max(wall, rows.results.times[index(op)].end);
  const Spans blocks = block_spans(rows);
  const IterationBubbles iteration = bubbles_between(blocks, wall);
  StageRows stages{rows, blocks, demand.is_live};
  std::vector<Decision> asking = rows.decisions;
  for (Decision each : demand.waiting) {
    each.start = Duration::max();  // not in this stretch
    asking.push_back(each);
  }
  return idle_by_cause({.iteration = iteration,
                        .served = rows.served,
                        .decisions = asking,
                        .backlog = demand.backlog,
                        .prefills = stages.take_prefills(),
                        .known = stages.take_known()});
}

}  // namespace longhaul::prefill
