#include <algorithm>

#include "prefill/placement.hpp"
#include "prefill/prompt/passes.hpp"

namespace longhaul::prefill {
namespace {

constexpr int kMostTries = 32;

}  // namespace

std::optional<Controller::Choice> Controller::on_pipeline(FreeTime& free, const Asked& asked,
                                                          std::size_t pipeline, Duration limit) {
  const ServedModel& model = asked.served->model;
  const Pipeline& own = asked.served->serving.pipelines[pipeline];
  Choice choice{.pipeline = pipeline};
  if (policy_ == PlacementPolicy::careless) return carelessly(asked, pipeline, limit);
  if (model.chunk > 0) {
    auto passes = earliest_chunks(free, model, own, asked.context, asked.tokens, asked.from, limit);
    if (!passes) return std::nullopt;
    choice.passes = std::move(*passes);
    choice.start = choice.passes.front().start;
    choice.end = choice.passes.back().start + pass_span(model, choice.passes.back().time);
    return choice;
  }
  const auto start = earliest_pass(free, model, own, asked.whole, asked.from, limit);
  if (!start) return std::nullopt;
  choice.start = *start;
  choice.end = *start + pass_span(model, asked.whole);
  if (policy_ == PlacementPolicy::best_fit)
    choice.left = free.gap_end(own.ranks.front(), *start, model.guard) - *start;
  return choice;
}

std::optional<Controller::Choice> Controller::carelessly(const Asked& asked, std::size_t pipeline,
                                                         Duration limit) {
  const std::int32_t rank = asked.served->serving.pipelines[pipeline].ranks.front();
  const auto start = free_.earliest(rank, asked.from, Duration{1}, Duration{}, limit);
  if (!start) return std::nullopt;
  return Choice{.pipeline = pipeline, .start = *start, .end = *start + asked.whole, .passes = {}};
}

bool Controller::is_better(const Choice& a, const Choice& b) const {
  if (!a.passes.empty() && policy_ == PlacementPolicy::best_fit) return a.end < b.end;
  return a.start < b.start || (a.start == b.start && a.left < b.left);
}

bool Controller::comes_first(const Choice& a, const Choice& b) const {
  return is_better(a, b) || (!is_better(b, a) && a.pipeline < b.pipeline);
}

bool Controller::could_hold(const Asked& asked) {
  if (policy_ == PlacementPolicy::careless) return true;
  const ServedModel& model = asked.served->model;
  if (!indexes_.empty() && model.stages == 1 && model.chunk == 0 && !free_.is_apart())
    return asked.whole <= indexes_[asked.model].longest();
  const auto [known, is_new] = holds_[asked.model].try_emplace(asked.whole.count(), false);
  if (!is_new) return known->second;
  // Without anything placed all repeats with the period.
  const Duration period = empty_.period();
  Asked ever = asked;
  ever.from = period;
  for (std::size_t i = 0; i < asked.served->serving.pipelines.size() && !known->second; ++i)
    known->second = on_pipeline(empty_, ever, i, 2 * period).has_value();
  return known->second;
}

/// After all that is placed the bubbles are empty: what fits, fits within two periods from there.
Duration Controller::last_start(const Asked& asked) const {
  return std::max(asked.from, free_.last_end()) + 2 * free_.period();
}

std::optional<Controller::Choice> Controller::choose_of_all(const Asked& asked,
                                                            std::optional<Choice> best) {
  Duration limit = last_start(asked);
  const auto& pipelines = asked.served->serving.pipelines;
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    if (best) limit = std::min(limit, best->passes.empty() ? best->start : best->end);
    const Duration bound = std::max(asked.from, free_.first_free(pipelines[i].ranks.front()));
    if (bound > limit) continue;
    if (best && policy_ == PlacementPolicy::earliest &&
        std::pair{bound, i} > std::pair{best->start, best->pipeline})
      continue;
    auto choice = on_pipeline(free_, asked, i, limit);
    if (choice && (!best || comes_first(*choice, *best))) best = std::move(choice);
  }
  return best;
}

/// A gap is a lower bound on the choice of its pipeline, and gaps come in the order of choices: the
/// search ends with the first gap that is not better than the best choice so far. Of one stage the
/// bound is exact, so that it ends with the first one; where other stages' GPUs send too many on,
/// all pipelines are looked at after all, those that start too late only briefly.
std::optional<Controller::Choice> Controller::choose_by_index(const Asked& asked, Duration length) {
  const Duration limit = last_start(asked);
  GapIndex::Search search{indexes_[asked.model], asked.from, length, limit};
  std::optional<Choice> best;
  for (int tries = 0; tries < kMostTries; ++tries) {
    const auto gap = search.next();
    if (!gap) return best;
    const std::size_t pipeline = gap->pipeline;
    Choice bound{.pipeline = pipeline, .start = gap->start, .passes = {}};
    if (policy_ == PlacementPolicy::best_fit) bound.left = gap->length();
    if (best && !comes_first(bound, *best)) return best;
    Asked from_gap = asked;
    from_gap.from = gap->start;
    auto choice = on_pipeline(free_, from_gap, pipeline, best ? best->start : limit);
    if (choice && (!best || comes_first(*choice, *best))) best = std::move(choice);
  }
  return choose_of_all(asked, std::move(best));
}

std::optional<Controller::Choice> Controller::choose(const Asked& asked) {
  const ServedModel& model = asked.served->model;
  // Chunks may begin in any gap, and where best-fit has them end first no gap says.
  const bool by_end = model.chunk > 0 && policy_ == PlacementPolicy::best_fit;
  const Duration length = model.chunk > 0 ? Duration{1} : model.stage_time(asked.whole, 0);
  if (indexes_.empty() || by_end || length <= Duration{} ||
      asked.from < indexes_[asked.model].now())
    return choose_of_all(asked, std::nullopt);
  return choose_by_index(asked, length);
}

}  // namespace longhaul::prefill
