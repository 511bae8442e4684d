#include "prefill/pipeline_search.hpp"

#include <algorithm>

#include "prefill/prompt/passes.hpp"

namespace longhaul::prefill {
namespace {

/// Looks for the passes of one prompt on one pipeline, without taking anything.
class ChunkSearch {
public:
  ChunkSearch(FreeTime& free, const ServedModel& model, const Pipeline& pipeline)
      : free_{free}, model_{model}, pipeline_{pipeline} {}

  /// The next pass after `context`, which starts by `limit`.
  [[nodiscard]] std::optional<PlacedPass> next(std::int64_t context, std::int64_t left,
                                               Duration from, Duration limit) {
    const std::int64_t most = std::min(left, model_.chunk);
    const auto full = place(context, most, from, limit);
    const auto least = time(context, 1);
    if (!full && !least) return std::nullopt;
    for (Duration begin = from; least;) {
      const auto start =
          earliest_pass(free_, model_, pipeline_, *least, after_last(*least, begin), limit);
      if (!start || (full && *start >= full->start)) return full;
      const auto part = fullest_at(context, most, *start);
      if (part) return part;
      begin = free_.gap_end(pipeline_.ranks.front(), *start, Duration{}) + Duration{1};
    }
    return full;
  }
  void note(const PlacedPass& pass) {
    last_ = pass;
    has_last_ = true;
  }

private:
  [[nodiscard]] std::optional<Duration> time(std::int64_t context, std::int64_t tokens) const {
    const PassPart part{context, tokens};
    return pass_time(model_, {&part, 1});
  }
  /// The earliest start of a pass of that time that keeps every stage after the last pass.
  [[nodiscard]] Duration after_last(Duration whole, Duration from) const {
    if (!has_last_) return from;
    for (int stage = 0; stage < model_.stages; ++stage)
      from = std::max(from, last_.start + stage_offset(model_, last_.time, stage) +
                                model_.stage_time(last_.time, stage) -
                                stage_offset(model_, whole, stage));
    return from;
  }
  [[nodiscard]] std::optional<PlacedPass> place(std::int64_t context, std::int64_t tokens,
                                                Duration from, Duration limit) {
    const auto whole = time(context, tokens);
    if (!whole) return std::nullopt;
    const auto start =
        earliest_pass(free_, model_, pipeline_, *whole, after_last(*whole, from), limit);
    if (!start) return std::nullopt;
    return PlacedPass{*start, *whole, tokens, tokens};
  }
  /// The most tokens that start at that very time, where they are worth it.
  [[nodiscard]] std::optional<PlacedPass> fullest_at(std::int64_t context, std::int64_t most,
                                                     Duration start) {
    std::optional<PlacedPass> best;
    for (std::int64_t low = 1, high = most; low <= high;) {
      const std::int64_t middle = low + (high - low) / 2;
      const auto found = place(context, middle, start, start);
      if (found) best = found;
      (found ? low : high) = found ? middle + 1 : middle - 1;
    }
    if (!best) return std::nullopt;
    const PassPart part{context, best->tokens};
    return is_worth(model_, {&part, 1}, best->time) ? best : std::nullopt;
  }

  FreeTime& free_;
  const ServedModel& model_;
  const Pipeline& pipeline_;
  PlacedPass last_{};
  bool has_last_ = false;
};

}  // namespace

/// All stages fit only later and later: each asks its GPU, and where it starts later than the
/// stages before it allow, all begin anew from there. The least fixed point is the earliest start;
/// where it would go over the end of an iteration that it must not leave, all begin anew from that.
std::optional<Duration> earliest_pass(FreeTime& free, const ServedModel& model,
                                      const Pipeline& pipeline, Duration whole, Duration from,
                                      Duration limit) {
  Duration start = from;
  const int stages = model.stages;
  for (int agreed = 0, stage = 0; agreed < stages; stage = (stage + 1) % stages) {
    const Duration offset = stage_offset(model, whole, stage);
    const auto found =
        free.earliest(pipeline.ranks[static_cast<std::size_t>(stage)], start + offset,
                      model.stage_time(whole, stage), model.guard, limit + offset);
    if (!found) return std::nullopt;
    if (*found == start + offset) {
      ++agreed;
    } else {
      start = *found - offset;
      agreed = 1;
    }
    if (agreed < stages) continue;
    const Duration inside = free.inside_iteration(start, start + pass_span(model, whole));
    if (inside == start) continue;
    start = inside;
    agreed = 0;
  }
  return start;
}

namespace {

std::optional<std::vector<PlacedPass>> chunks_from(FreeTime& free, const ServedModel& model,
                                                   const Pipeline& pipeline, std::int64_t context,
                                                   std::int64_t tokens, Duration from,
                                                   Duration limit) {
  ChunkSearch search{free, model, pipeline};
  std::vector<PlacedPass> passes;
  for (std::int64_t done = 0; done < tokens;) {
    const auto pass = search.next(context + done, tokens - done, from, limit);
    if (!pass) return std::nullopt;
    search.note(*pass);
    passes.push_back(*pass);
    done += pass->tokens;
    from = pass->start;
    limit = std::max(from, free.last_end()) + 2 * free.period();
  }
  return passes;
}

}  // namespace

std::optional<std::vector<PlacedPass>> earliest_chunks(FreeTime& free, const ServedModel& model,
                                                       const Pipeline& pipeline,
                                                       std::int64_t context, std::int64_t tokens,
                                                       Duration from, Duration limit) {
  while (from <= limit) {
    auto passes = chunks_from(free, model, pipeline, context, tokens, from, limit);
    if (!passes) return std::nullopt;
    const PlacedPass& last = passes->back();
    const Duration begin = passes->front().start;
    const Duration inside = free.inside_iteration(begin, last.start + pass_span(model, last.time));
    if (inside == begin) return passes;
    from = inside;
  }
  return std::nullopt;
}

}  // namespace longhaul::prefill
