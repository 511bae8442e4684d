#include <algorithm>
#include <functional>
#include <queue>

#include "base/error.hpp"
#include "prefill/backlog_queue.hpp"
#include "prefill/pass_filler.hpp"

namespace longhaul::prefill {
namespace {

/// Most requests that may be refused one after the other: a file of which nothing can be placed
/// ends.
std::int64_t most_refused(const std::vector<Request>& file) { return std::ssize(file); }

/// All that a backlog keeps account of.
ControllerMeans memory_of(const ControllerMeans& means) {
  return {.memory = means.memory, .held_after = means.held_after};
}

std::vector<Decision> in_strict_order(const IterationBubbles& iteration,
                                      const std::vector<Served>& served,
                                      const std::vector<Request>& file, PlacementPolicy policy,
                                      const BacklogOptions& options, const ControllerMeans& means) {
  Controller controller{
      iteration, served, policy, {false, options.iterations, options.apart}, memory_of(means)};
  std::vector<std::int64_t> longest(served.size(), 0);  // that was placed, by model
  EndlessFile requests{file};
  std::priority_queue<Duration, std::vector<Duration>, std::greater<>> starts;
  std::vector<Decision> decisions;
  Duration arrival{};
  for (std::int64_t refused = 0; refused < most_refused(file);) {
    if (std::ssize(starts) == options.waiting) {
      arrival = std::max(arrival, starts.top());
      starts.pop();
    }
    Decision decision = controller.decide(requests.next(arrival));
    // What had enough memory before has too little in what is left of the stretch.
    const bool is_over =
        decision.refused == RefusalReason::memory && decision.tokens <= longest[decision.model];
    if (is_over || decision.refused == RefusalReason::closed) break;
    refused = decision.refused ? refused + 1 : 0;
    if (!decision.refused) {
      starts.push(decision.start);
      longest[decision.model] = std::max(longest[decision.model], decision.tokens);
    }
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

/// Could a GPU have too little for the longest prompts of the file, as many as a filler may have on
/// it at once?
bool may_run_short(const std::vector<Served>& served, const std::vector<Request>& file,
                   const ControllerMeans& means) {
  if (!means.memory) return false;
  const auto& [model, serving] = served.front();
  std::int64_t tokens = 0;
  for (const Request& request : file)
    if (model.time(request.tokens)) tokens = std::max(tokens, request.tokens);
  // The prompts of a pass, and those that are still held after they ended.
  std::int64_t passes = 1;
  if (means.held_after > Duration{}) passes += means.held_after / least_stage_time(served) + 1;
  const Bytes most = held_memory(model, tokens, 0) * (passes * std::max(1, model.batch));
  return std::ranges::any_of(serving.pipelines, [&](const Pipeline& pipeline) {
    const auto least = means.memory->least_free(pipeline.ranks.front());
    return least && *least < most;
  });
}

/// What fills bubbles by length looks at no time of an answer.
std::vector<Served> without_slo(std::vector<Served> served) {
  for (Served& each : served) each.model.slo_ttft.reset();
  return served;
}

/// Fills bubbles from the queue, one after the other as they open.
class BubbleFiller {
public:
  BubbleFiller(const IterationBubbles& iteration, const std::vector<Served>& served,
               const std::vector<Request>& file, const BacklogOptions& options)
      : iteration_{iteration},
        served_{served},
        options_{options},
        queue_{file, options, [this](Waiting& waiting) { return admit(waiting); }} {
    for (const Bubble& bubble : iteration.bubbles) longest_ = std::max(longest_, usable(bubble));
  }

  [[nodiscard]] std::vector<Decision> fill() {
    std::vector<Bubble> bubbles = iteration_.bubbles;
    std::ranges::stable_sort(bubbles, {}, &Bubble::start);
    for (const Pipeline& pipeline : served_.front().serving.pipelines)
      pipeline_of_rank_.emplace_back(pipeline.ranks.front(), pipeline.number);
    std::ranges::sort(pipeline_of_rank_);
    for (std::int64_t i = 0; i < options_.iterations; ++i)
      for (const Bubble& bubble : bubbles) fill_bubble(bubble, i * iteration_.period);
    return std::move(decisions_);
  }

private:
  [[nodiscard]] const ServedModel& model() const { return served_.front().model; }
  [[nodiscard]] Duration usable(const Bubble& bubble) const {
    return bubble.length() - model().guard;
  }
  [[nodiscard]] std::optional<RefusalReason> admit(Waiting& waiting) const {
    const auto whole = model().time(waiting.request.tokens);
    if (!whole) return RefusalReason::profile;
    waiting.whole = *whole;
    if (*whole > longest_) return RefusalReason::too_long;
    return std::nullopt;
  }

  void fill_bubble(const Bubble& bubble, Duration begin) {
    const auto serves = std::ranges::lower_bound(pipeline_of_rank_, bubble.rank, {},
                                                 [](const auto& pair) { return pair.first; });
    if (serves == pipeline_of_rank_.end() || serves->first != bubble.rank) return;
    const Duration opens = begin + bubble.start;
    Duration start = opens;
    for (Duration room = usable(bubble); room > Duration{};) {
      queue_.refill(opens, decisions_);
      const auto placed = queue_.take_for(room);
      if (!placed) return;
      decisions_.push_back({.request = placed->request.id,
                            .arrival = placed->request.arrival,
                            .tokens = placed->request.tokens,
                            .pipeline = serves->second,
                            .start = start,
                            .end = start + placed->whole,
                            .compute = placed->whole});
      start += placed->whole;
      room -= placed->whole;
    }
  }

  const IterationBubbles& iteration_;
  const std::vector<Served>& served_;
  BacklogOptions options_;
  Duration longest_{};
  BacklogQueue queue_;
  std::vector<std::pair<std::int32_t, std::int32_t>> pipeline_of_rank_;  ///< rank, pipeline
  std::vector<Decision> decisions_;
};

}  // namespace

std::vector<Decision> place_backlog(const IterationBubbles& iteration,
                                    const std::vector<Served>& served,
                                    const std::vector<Request>& file, PlacementPolicy policy,
                                    const BacklogOptions& options, const ControllerMeans& means) {
  for (const Request& request : file) (void)served_index(request, served);
  const ServedModel& model = served.front().model;
  if (!fills_by_length(policy, served.size(), model.stages))
    return in_strict_order(iteration, served, file, policy, options, means);
  if (may_run_short(served, file, means))
    return in_strict_order(iteration, without_slo(served), file, policy, options, means);
  if (model.chunk > 0 || model.batch > 1)
    return PassFiller{iteration, served.front(), file, options}.fill();
  return BubbleFiller{iteration, served, file, options}.fill();
}

}  // namespace longhaul::prefill
