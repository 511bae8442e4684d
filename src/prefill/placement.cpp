#include "prefill/placement.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/suggest.hpp"
#include "prefill/prompt/passes.hpp"

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
                       PlacementPolicy policy, FillRange range, ControllerMeans means)
    : served_{std::move(served)},
      policy_{policy},
      free_{iteration, range, least_stage_time(served_)},
      empty_{iteration, {.from_zero = false, .apart = range.apart}, least_stage_time(served_)},
      holds_(served_.size()),
      means_{std::move(means)},
      decoding_(to_size(means_.decode_ranks)) {
  if (policy_ != PlacementPolicy::careless) return;
  for (const Served& each : served_)
    if (each.model.stages > 1 || each.model.chunk > 0)
      fail("--policy careless knows whole prompts on one GPU. Leave prefill.stages and chunk out.");
}

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

bool Controller::could_hold(std::size_t model, const Asked& asked) {
  if (policy_ == PlacementPolicy::careless) return true;
  const auto [known, is_new] = holds_[model].try_emplace(asked.whole.count(), false);
  if (!is_new) return known->second;
  // Without anything placed all repeats with the period.
  const Duration period = empty_.period();
  Asked ever = asked;
  ever.from = period;
  for (std::size_t i = 0; i < asked.served->serving.pipelines.size() && !known->second; ++i)
    known->second = on_pipeline(empty_, ever, i, 2 * period).has_value();
  return known->second;
}

std::optional<Controller::Choice> Controller::choose(const Asked& asked,
                                                     const std::vector<bool>& without) {
  // After all that is placed the bubbles are empty: what fits, fits within two periods from there.
  Duration limit = std::max(asked.from, free_.last_end()) + 2 * free_.period();
  std::optional<Choice> best;
  const auto& pipelines = asked.served->serving.pipelines;
  for (std::size_t i = 0; i < pipelines.size(); ++i) {
    if (!without.empty() && without[i]) continue;
    const Duration bound = std::max(asked.from, free_.first_free(pipelines[i].ranks.front()));
    if (bound > limit || (best && policy_ == PlacementPolicy::earliest && bound >= best->start))
      continue;
    auto choice = on_pipeline(free_, asked, i, limit);
    if (!choice) continue;
    if (!best || is_better(*choice, *best)) best = std::move(choice);
    limit = std::min(limit, best->passes.empty() ? best->start : best->end);
  }
  return best;
}

void Controller::take(const Asked& asked, const Choice& choice) {
  const ServedModel& model = asked.served->model;
  const Pipeline& pipeline = asked.served->serving.pipelines[choice.pipeline];
  if (policy_ == PlacementPolicy::careless) {
    const std::int32_t rank = pipeline.ranks.front();
    const Duration room = free_.gap_end(rank, choice.start, Duration{}) - choice.start;
    return free_.take(rank, choice.start, std::min(asked.whole, room));
  }
  const auto take_pass = [&](Duration start, Duration time) {
    for (int stage = 0; stage < model.stages; ++stage)
      free_.take(pipeline.ranks[static_cast<std::size_t>(stage)],
                 start + stage_offset(model, time, stage), model.stage_time(time, stage));
  };
  if (choice.passes.empty()) take_pass(choice.start, asked.whole);
  for (const PlacedPass& pass : choice.passes) take_pass(pass.start, pass.time);
}

/// All of an answer but keys and values; `choice` is what it takes.
Decision Controller::answer(const Request& request, Duration network, std::optional<Choice>& choice,
                            Asked& asked) {
  const std::size_t index = served_index(request, served_);
  const Served& served = served_[index];
  Decision decision{
      .request = request.id, .arrival = request.arrival, .tokens = request.tokens, .model = index};
  decision.datacenter = means_.datacenter;
  decision.network = network;
  const auto refuse = [&](RefusalReason reason) {
    decision.refused = reason;
    return decision;
  };
  if (!served.model.time(request.tokens)) return refuse(RefusalReason::profile);
  asked = {.served = &served, .tokens = request.tokens, .from = request.arrival + network / 2};
  if (means_.cache && served.model.dimensions)
    asked.context = means_.cache->leading_tokens(request.hash_ids, request.tokens, asked.from);
  asked.tokens -= asked.context;
  decision.cached = asked.context;
  const PassPart part{asked.context, asked.tokens};
  asked.whole = *pass_time(served.model, {&part, 1});
  for (const Pipeline& pipeline : served.serving.pipelines)
    for (const std::int32_t rank : pipeline.ranks) {
      // A request from nearby that comes later may be there before this one.
      free_.forget(rank, request.arrival);
      if (means_.memory) means_.memory->forget(rank, request.arrival);
    }
  if (!could_hold(index, asked)) return refuse(RefusalReason::too_long);
  decision.lacks = lacking_memory(asked);
  if (decision.lacks > Bytes{}) return refuse(RefusalReason::memory);
  if (served.model.decode) {
    const auto rank = free_decode_rank(served.model, request.arrival, asked.from);
    if (!rank) return refuse(RefusalReason::decode);
    decision.decode_rank = *rank;
  }
  choice = choose_within_memory(asked);
  if (!choice) return refuse(RefusalReason::closed);
  const auto& slo = served.model.slo_ttft;
  if (slo && choice->end + network / 2 - request.arrival > *slo) return refuse(RefusalReason::slo);
  decision.compute = asked.whole;
  decision.hops = (served.model.stages - 1) * served.model.hop;
  decision.pipeline = served.serving.pipelines[choice->pipeline].number;
  decision.start = choice->start;
  decision.end = choice->end;
  decision.passes = choice->passes;
  decision.waited_for_memory = choice->waited_for_memory;
  if (!choice->passes.empty()) {
    decision.compute = Duration{};
    for (const PlacedPass& pass : choice->passes) decision.compute += pass.time;
  }
  return decision;
}

Decision Controller::predict(const Request& request, Duration network) {
  std::optional<Choice> choice;
  Asked asked;
  return answer(request, network, choice, asked);
}

Decision Controller::decide(const Request& request, Duration network) {
  std::optional<Choice> choice;
  Asked asked;
  Decision decision = answer(request, network, choice, asked);
  if (decision.refused) return decision;
  take(asked, *choice);
  send_keys(asked, *choice, decision);
  if (means_.cache) means_.cache->keep(request.hash_ids, request.tokens, decision.end);
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
