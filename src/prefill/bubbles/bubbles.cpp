#include "prefill/bubbles/bubbles.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/index.hpp"

namespace longhaul::prefill {
namespace {

/// Time in which a GPU computes, blocks that touch or overlap as one.
struct BusySpan {
  std::int64_t start = 0, end = 0;
  std::int64_t first_op = -1, last_op = -1;
};

std::vector<BusySpan> busy_spans(std::vector<BusySpan> blocks) {
  std::ranges::sort(blocks, [](const BusySpan& a, const BusySpan& b) {
    return std::pair{a.start, a.end} < std::pair{b.start, b.end};
  });
  std::vector<BusySpan> spans;
  for (const BusySpan& block : blocks) {
    if (!spans.empty() && block.start <= spans.back().end) {
      if (block.end >= spans.back().end) {
        spans.back().end = block.end;
        spans.back().last_op = block.last_op;
      }
    } else {
      spans.push_back(block);
    }
  }
  return spans;
}

void add_bubbles(const std::vector<BusySpan>& spans, std::int32_t rank,
                 IterationBubbles& iteration) {
  const Duration period = iteration.period;
  if (spans.empty()) {
    if (period > Duration{}) iteration.bubbles.push_back({rank, Duration{}, period, -1, -1});
    return;
  }
  // Around the iteration's end first: where it begins in the next iteration, it stands first.
  const BusySpan &first = spans.front(), &last = spans.back();
  const Bubble around{rank, Duration{last.end}, period + Duration{first.start}, last.last_op,
                      first.first_op};
  const bool begins_anew = around.start == period;
  if (around.length() > Duration{} && begins_anew)
    iteration.bubbles.push_back(
        {rank, Duration{}, Duration{first.start}, last.last_op, first.first_op});
  for (std::size_t i = 0; i + 1 < spans.size(); ++i)
    iteration.bubbles.push_back({rank, Duration{spans[i].end}, Duration{spans[i + 1].start},
                                 spans[i].last_op, spans[i + 1].first_op});
  if (around.length() > Duration{} && !begins_anew) iteration.bubbles.push_back(around);
}

}  // namespace

double IterationBubbles::busy_ratio() const {
  if (period == Duration{} || gpus == 0) return 0;
  return static_cast<double>(busy.count()) / (static_cast<double>(period.count()) * gpus);
}

IterationBubbles find_bubbles(std::span<const TimelineRow> rows, int gpus) {
  IterationBubbles iteration;
  iteration.gpus = gpus;
  std::vector<std::vector<BusySpan>> blocks(to_size(gpus));
  for (const TimelineRow& row : rows) {
    if (!has_run(row)) continue;
    iteration.period = std::max(iteration.period, Duration{row.end_ns});
    if (is_compute(row.kind) && row.rank < gpus && row.end_ns > row.start_ns)
      blocks[at(row.rank)].push_back({row.start_ns, row.end_ns, row.op, row.op});
  }
  for (std::int32_t rank = 0; rank < gpus; ++rank) {
    const std::vector<BusySpan> spans = busy_spans(std::move(blocks[at(rank)]));
    for (const BusySpan& span : spans) iteration.busy += Duration{span.end - span.start};
    add_bubbles(spans, rank, iteration);
  }
  return iteration;
}

IterationBubbles cut_at_ends(IterationBubbles iteration) {
  std::vector<Bubble> cut;
  for (const Bubble& bubble : iteration.bubbles) {
    if (bubble.end <= iteration.period) {
      cut.push_back(bubble);
      continue;
    }
    // It is the last of its rank.
    const auto of_rank = std::ranges::find(cut, bubble.rank, &Bubble::rank);
    const Bubble first{bubble.rank, {}, bubble.end - iteration.period, -1, bubble.before_op};
    const Bubble last{bubble.rank, bubble.start, iteration.period, bubble.after_op, -1};
    if (first.length() > Duration{}) cut.insert(of_rank, first);
    if (last.length() > Duration{}) cut.push_back(last);
  }
  iteration.bubbles = std::move(cut);
  return iteration;
}

std::vector<LengthClass> idle_by_length(const IterationBubbles& iteration) {
  constexpr std::array kBelow{1ms,   2ms,   5ms,    10ms,   20ms,   50ms,    100ms,
                              200ms, 500ms, 1000ms, 2000ms, 5000ms, 10'000ms};
  std::vector<LengthClass> classes;
  for (const auto below : kBelow) classes.push_back({below});
  classes.push_back({Duration::max()});
  for (const Bubble& bubble : iteration.bubbles) {
    const auto own = std::ranges::upper_bound(classes, bubble.length(), {}, &LengthClass::below);
    LengthClass& length = own == classes.end() ? classes.back() : *own;
    ++length.bubbles;
    length.idle += bubble.length();
  }
  std::erase_if(classes, [](const LengthClass& length) { return length.bubbles == 0; });
  return classes;
}

}  // namespace longhaul::prefill
