#include "prefill/placement.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace longhaul::prefill {

std::vector<Served> served_models(const Scenario& scenario, int cell) {
  if (scenario.served.empty())
    fail("{}: there is no [prefill] (it says what is served and how long prompts take). Add one.",
         scenario.name);
  std::vector<Served> served;
  for (const ServedModel& model : scenario.served)
    served.push_back({model, serving_pipelines(scenario, model.stages, cell)});
  return served;
}

std::size_t served_index(const Request& request, const std::vector<Served>& served) {
  if (request.model.empty()) return 0;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < served.size(); ++i) {
    if (served[i].model.name == request.model) return i;
    names.push_back(served[i].model.name);
  }
  fail("request {}: there is no served model \"{}\". {}", request.id, request.model,
       suggestion(request.model, names));
}

Duration least_stage_time(const std::vector<Served>& served) {
  Duration least = Duration::max();
  for (const Served& each : served)
    for (const int stage : {0, each.model.stages - 1}) {
      if (each.model.profile.empty()) {
        least = std::min(least, each.model.stage_time(*each.model.time(1), stage));
      } else {
        for (const PrefillPoint& point : each.model.profile)
          least = std::min(least, each.model.stage_time(point.time, stage));
      }
    }
  return std::max(least, Duration{1});
}

Controller::Controller(const IterationBubbles& iteration, std::vector<Served> served,
                       PlacementPolicy policy, FillRange range)
    : served_{std::move(served)},
      policy_{policy},
      free_{iteration, range, least_stage_time(served_)},
      empty_{iteration, {false}, least_stage_time(served_)},
      holds_(served_.size()) {}

/// All stages fit only later and later: each asks its GPU, and where it starts later than the
/// stages before it allow, all begin anew from there. The least fixed point is the earliest start.
std::optional<Duration> Controller::earliest_on(FreeTime& free, const ServedModel& model,
                                                const Pipeline& pipeline, Duration whole,
                                                Duration from, Duration limit) const {
  Duration start = from;
  const int stages = model.stages;
  for (int agreed = 0, stage = 0; agreed < stages; stage = (stage + 1) % stages) {
    const Duration length = model.stage_time(whole, stage);
    const Duration offset = stage == 0
                                ? Duration{}
                                : model.stage_time(whole, 0) +
                                      (stage - 1) * model.stage_time(whole, 1) + stage * model.hop;
    const auto found = free.earliest(pipeline.ranks[static_cast<std::size_t>(stage)],
                                     start + offset, length, model.guard, limit + offset);
    if (!found) return std::nullopt;
    if (*found == start + offset) {
      ++agreed;
    } else {
      start = *found - offset;
      agreed = 1;
    }
  }
  return start;
}

bool Controller::could_hold(std::size_t model, Duration whole) {
  const auto [known, is_new] = holds_[model].try_emplace(whole.count(), false);
  if (!is_new) return known->second;
  // Without anything placed all repeats with the period.
  const Duration period = empty_.period();
  const Served& served = served_[model];
  for (const Pipeline& pipeline : served.serving.pipelines)
    if (earliest_on(empty_, served.model, pipeline, whole, period, 2 * period)) {
      known->second = true;
      break;
    }
  return known->second;
}

std::optional<Controller::Choice> Controller::choose(const Served& served, Duration whole,
                                                     Duration from) {
  // After all that is placed the bubbles are empty: what fits, fits within two periods from there.
  Duration limit = std::max(from, free_.last_end()) + 2 * free_.period();
  std::optional<Choice> best;
  for (std::size_t i = 0; i < served.serving.pipelines.size(); ++i) {
    const Pipeline& pipeline = served.serving.pipelines[i];
    const std::int32_t first = pipeline.ranks.front();
    const Duration bound = std::max(from, free_.first_free(first));
    if (bound > limit || (best && policy_ == PlacementPolicy::earliest && bound >= best->start))
      continue;
    const auto start = earliest_on(free_, served.model, pipeline, whole, from, limit);
    if (!start) continue;
    Choice choice{i, *start, {}};
    if (policy_ == PlacementPolicy::best_fit)
      choice.left = free_.gap_end(first, *start, served.model.guard) - *start;
    if (!best || choice.start < best->start ||
        (choice.start == best->start && choice.left < best->left))
      best = choice;
    limit = best->start;
  }
  return best;
}

void Controller::take(const Served& served, const Choice& choice, Duration whole) {
  Duration start = choice.start;
  const Pipeline& pipeline = served.serving.pipelines[choice.pipeline];
  for (int stage = 0; stage < served.model.stages; ++stage) {
    const Duration length = served.model.stage_time(whole, stage);
    free_.take(pipeline.ranks[static_cast<std::size_t>(stage)], start, length);
    start += length + served.model.hop;
  }
}

Decision Controller::decide(const Request& request) {
  const std::size_t index = served_index(request, served_);
  const Served& served = served_[index];
  Decision decision{
      .request = request.id, .arrival = request.arrival, .tokens = request.tokens, .model = index};
  const auto whole = served.model.time(request.tokens);
  if (!whole) {
    decision.refused = RefusalReason::profile;
    return decision;
  }
  for (const Pipeline& pipeline : served.serving.pipelines)
    for (const std::int32_t rank : pipeline.ranks) free_.forget(rank, request.arrival);
  if (!could_hold(index, *whole)) {
    decision.refused = RefusalReason::too_long;
    return decision;
  }
  const auto choice = choose(served, *whole, request.arrival);
  decision.compute = *whole;
  decision.hops = (served.model.stages - 1) * served.model.hop;
  const auto& slo = served.model.slo_ttft;
  if (!choice)
    decision.refused = RefusalReason::closed;
  else if (slo && choice->start + decision.compute + decision.hops - request.arrival > *slo)
    decision.refused = RefusalReason::slo;
  if (decision.refused) return decision;
  take(served, *choice, *whole);
  decision.pipeline = served.serving.pipelines[choice->pipeline].number;
  decision.start = choice->start;
  decision.end = choice->start + decision.compute + decision.hops;
  return decision;
}

std::vector<Decision> place_open_loop(Controller& controller,
                                      const std::vector<Request>& requests) {
  std::vector<Decision> decisions;
  decisions.reserve(requests.size());
  for (const Request& request : requests) decisions.push_back(controller.decide(request));
  return decisions;
}

}  // namespace longhaul::prefill
