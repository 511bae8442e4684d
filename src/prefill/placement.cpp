#include "prefill/placement.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/suggest.hpp"
#include "prefill/pipelines/skewed_pipelines.hpp"
#include "prefill/prompt/passes.hpp"

namespace longhaul::prefill {

std::vector<Served> served_models(const Scenario& scenario, int cell,
                                  const IterationBubbles& iteration) {
  if (scenario.served.empty())
    fail("{}: there is no [prefill] (it says what is served and how long prompts take). Add one.",
         scenario.name);
  std::vector<Served> served;
  for (const ServedModel& model : scenario.served)
    served.push_back({model, model.skewed_for > 0
                                 ? skewed_pipelines(scenario, model, cell, iteration)
                                 : serving_pipelines(scenario, model.stages, cell)});
  return served;
}

std::vector<Served> served_models(const Scenario& scenario, int cell) {
  for (const ServedModel& model : scenario.served)
    LONGHAUL_ASSERT(model.skewed_for == 0, "{}: its pipelines follow from bubbles", model.name);
  return served_models(scenario, cell, {});
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
  if (policy_ != PlacementPolicy::careless) {
    index_gaps(iteration, range);
    return;
  }
  for (const Served& each : served_)
    if (each.model.stages > 1 || each.model.chunk > 0)
      fail("--policy careless knows whole prompts on one GPU. Leave prefill.stages and chunk out.");
}

void Controller::index_gaps(const IterationBubbles& iteration, const FillRange& range) {
  if (means_.lookup == PipelineLookup::all || iteration.period <= Duration{}) return;
  const GapOrder order = policy_ == PlacementPolicy::best_fit ? GapOrder::end : GapOrder::pipeline;
  for (const Served& each : served_)
    indexes_.emplace_back(iteration, each.serving, each.model.guard, least_stage_time(served_),
                          range, order);
}

void Controller::take_stage(std::int32_t rank, Duration start, Duration length) {
  const auto split = free_.take(rank, start, length);
  if (!split) return;
  for (GapIndex& index : indexes_) index.replace(rank, *split);
}

void Controller::take(const Asked& asked, const Choice& choice) {
  const ServedModel& model = asked.served->model;
  const Pipeline& pipeline = asked.served->serving.pipelines[choice.pipeline];
  if (policy_ == PlacementPolicy::careless) {
    const std::int32_t rank = pipeline.ranks.front();
    const Duration room = free_.gap_end(rank, choice.start, Duration{}) - choice.start;
    return take_stage(rank, choice.start, std::min(asked.whole, room));
  }
  const auto take_pass = [&](Duration start, Duration time) {
    for (int stage = 0; stage < model.stages; ++stage)
      take_stage(pipeline.ranks[static_cast<std::size_t>(stage)],
                 start + stage_offset(model, time, stage), model.stage_time(time, stage));
  };
  if (choice.passes.empty()) take_pass(choice.start, asked.whole);
  for (const PlacedPass& pass : choice.passes) take_pass(pass.start, pass.time);
}

/// `choice` is what it takes, where it is placed.
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
  const auto whole = served.model.time(request.tokens);
  if (!whole) return refuse(RefusalReason::profile);
  asked = {.served = &served,
           .model = index,
           .tokens = request.tokens,
           .from = request.arrival + network / 2};
  if (!means_.caches.empty() && served.model.dimensions)
    asked.context =
        means_.caches[index].leading_tokens(request.hash_ids, request.tokens, asked.from);
  asked.tokens -= asked.context;
  decision.cached = asked.context;
  const PassPart part{asked.context, asked.tokens};
  asked.whole = asked.context == 0 ? *whole : *pass_time(served.model, {&part, 1});
  // Not the time at which it is here: one from nearby that comes later may be here before it.
  free_.forget(request.arrival);
  for (GapIndex& each : indexes_) each.advance(request.arrival);
  if (!could_hold(asked)) return refuse(RefusalReason::too_long);
  decision.lacks = lacking_memory(asked);
  if (decision.lacks > Bytes{}) return refuse(RefusalReason::memory);
  choice = choose_within_memory(asked, decision.lacks);
  if (!choice) return refuse(decision.lacks > Bytes{} ? RefusalReason::memory : closed_to(asked));
  if (const auto no = refuse_after_stages(asked, *choice, decision)) return refuse(*no);
  decision.compute = asked.whole;
  decision.hops = (served.model.stages - 1) * served.model.hop;
  decision.pipeline = served.serving.pipelines[choice->pipeline].number;
  decision.start = choice->start;
  decision.end = choice->end;
  decision.passes = choice->passes;
  decision.waited_for_memory = choice->waited_for_memory;
  decision.wanted = choice->wanted;
  if (!choice->passes.empty()) {
    decision.compute = Duration{};
    for (const PlacedPass& pass : choice->passes) decision.compute += pass.time;
  }
  return decision;
}

/// Why a prompt has no bubble: `decode` is tried first, and without a start that is of the time at
/// which it is here.
RefusalReason Controller::closed_to(const Asked& asked) {
  const ServedModel& model = asked.served->model;
  const bool has_slot = !sends_keys(model) ||
                        free_decode_rank(model, asked.from, {asked.from, asked.from + Duration{1}});
  return has_slot ? RefusalReason::closed : RefusalReason::decode;
}

/// What comes after the last stage, with a place at a decode rank; or why there is none.
std::optional<RefusalReason> Controller::refuse_after_stages(const Asked& asked,
                                                             const Choice& choice,
                                                             Decision& decision) {
  const ServedModel& model = asked.served->model;
  decision.kv = keys_there(asked, choice) - choice.end;
  decision.first_token = first_token_of(model);
  const Duration token = choice.end + decision.kv + decision.first_token;
  if (sends_keys(model)) {
    const auto rank = free_decode_rank(model, decision.arrival, {choice.start, token});
    if (!rank) return RefusalReason::decode;
    decision.decode_rank = *rank;
  }
  if (model.slo_ttft && token + decision.network / 2 - decision.arrival > *model.slo_ttft)
    return RefusalReason::slo;
  return std::nullopt;
}

const Decision& Controller::predict(const Request& request, Duration network) {
  predicted_ = {};
  predicted_.decision = answer(request, network, predicted_.choice, predicted_.asked);
  return predicted_.decision;
}

Decision Controller::decide(const Request& request, Duration network) {
  Offer offer;
  offer.decision = answer(request, network, offer.choice, offer.asked);
  return keep(request, std::move(offer));
}

Decision Controller::keep_predicted(const Request& request) {
  LONGHAUL_ASSERT(predicted_.decision.request == request.id,
                  "request {} was not the last predicted", request.id);
  return keep(request, std::move(predicted_));
}

Decision Controller::keep(const Request& request, Offer offer) {
  Decision decision = std::move(offer.decision);
  if (decision.refused) return decision;
  take(offer.asked, *offer.choice);
  send_keys(offer.asked, *offer.choice, decision);
  if (!means_.caches.empty())
    means_.caches[decision.model].keep(request.hash_ids, request.tokens, decision.end);
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
