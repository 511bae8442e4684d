#include <algorithm>
#include <map>
#include <span>

#include "base/index.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {
namespace {

/// What a stage sends as its layers get ready; `context`: tokens that were there before.
std::vector<ReadyBytes> keys_of_passes(const ServedModel& model, std::span<const PlacedPass> passes,
                                       std::int64_t context, int stage, KvSending sending) {
  std::vector<ReadyBytes> ready;
  // A cached prefix is sent with the first pass: the decode rank has none of it.
  std::int64_t before = context;
  for (const PlacedPass& pass : passes) {
    const auto layers =
        ready_layers(stage_kv(model, pass.tokens + before, stage), layers_of_stage(model, stage),
                     pass.start + stage_offset(model, pass.time, stage),
                     model.stage_time(pass.time, stage), sending);
    ready.insert(ready.end(), layers.begin(), layers.end());
    before = 0;
  }
  if (sending == KvSending::whole)
    for (ReadyBytes& part : ready) part.at = ready.back().at;
  return ready;
}

}  // namespace

Bytes Controller::lacking_memory(const Asked& asked) const {
  if (!means_.memory) return {};
  const ServedModel& model = asked.served->model;
  const std::int64_t tokens = asked.context + asked.tokens;
  Bytes least{INT64_MAX};
  for (const Pipeline& pipeline : asked.served->serving.pipelines) {
    Bytes lacks;
    for (int stage = 0; stage < model.stages; ++stage)
      if (const auto most = means_.memory->most_free(pipeline.ranks[to_size(stage)]))
        lacks = std::max(lacks, held_memory(model, tokens, stage) - *most);
    least = std::min(least, lacks);
    if (least <= Bytes{}) return {};
  }
  return least == Bytes{INT64_MAX} ? Bytes{} : least;
}

/// Of all GPUs of a choice the shortage that lasts longest, from the prompt's start until its keys
/// and values have left.
std::optional<MemoryShortage> Controller::shortage_of(const Asked& asked, const Choice& choice) {
  if (!means_.memory) return std::nullopt;
  const ServedModel& model = asked.served->model;
  const std::int64_t tokens = asked.context + asked.tokens;
  std::optional<MemoryShortage> worst;
  for (int stage = 0; stage < model.stages; ++stage) {
    const std::int32_t rank =
        asked.served->serving.pipelines[choice.pipeline].ranks[to_size(stage)];
    Duration until = choice.end;
    if (sends_keys(model))
      until =
          std::max(until, means_.link->end_of(rank, keys_of(asked, choice, stage), *model.decode));
    const auto found = means_.memory->last_shortage(rank, choice.start, until + means_.held_after,
                                                    held_memory(model, tokens, stage));
    if (found && (!worst || found->until > worst->until)) worst = found;
  }
  return worst;
}

/// A later start meets the same shortage until that is over, which is after the start that met it,
/// so none in between is left out.
std::optional<Controller::Choice> Controller::on_pipeline_within_memory(const Asked& asked,
                                                                        std::size_t pipeline,
                                                                        Duration limit,
                                                                        Bytes& lacks) {
  Asked from = asked;
  while (from.from <= limit) {
    auto choice = on_pipeline(free_, from, pipeline, limit);
    if (!choice) return std::nullopt;
    const auto shortage = shortage_of(from, *choice);
    if (!shortage) return choice;
    lacks = lacks == Bytes{} ? shortage->lacks : std::min(lacks, shortage->lacks);
    from.from = shortage->until;
  }
  return std::nullopt;
}

std::optional<Controller::Choice> Controller::choose_within_memory(const Asked& asked,
                                                                   Bytes& lacks) {
  auto first = choose(asked);
  if (!first || !shortage_of(asked, *first)) return first;
  // After all that is held two periods hold what fits at all.
  const Duration end =
      std::max(last_start(asked), means_.memory->last_release() + 2 * free_.period());
  std::optional<Choice> best;
  for (std::size_t i = 0; i < asked.served->serving.pipelines.size(); ++i) {
    const Duration limit = !best ? end : best->passes.empty() ? best->start : best->end;
    auto choice = on_pipeline_within_memory(asked, i, limit, lacks);
    if (choice && (!best || comes_first(*choice, *best))) best = std::move(choice);
  }
  if (!best) return best;
  lacks = {};
  best->waited_for_memory = true;
  best->wanted = first->start;
  return best;
}

/// Of places that are taken at some time of [during.from, during.until).
std::ptrdiff_t Controller::most_at_once(const std::vector<DecodeHold>& holds,
                                        const DecodeHold& during) {
  std::vector<std::pair<Duration, int>> changes;  // what is given back comes before what is taken
  for (const DecodeHold& each : holds) {
    if (each.until <= during.from || each.from >= during.until) continue;
    changes.emplace_back(std::max(each.from, during.from), 1);
    changes.emplace_back(each.until, -1);
  }
  std::ranges::sort(changes);
  std::ptrdiff_t taken = 0, most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, taken += change);
  return most;
}

/// The decode rank that has the most places free all the while; no later request arrives before
/// this one.
std::optional<std::int32_t> Controller::free_decode_rank(const ServedModel& model, Duration arrival,
                                                         const DecodeHold& hold) {
  std::optional<std::int32_t> best;
  std::ptrdiff_t least = model.decode->slots;
  for (std::size_t rank = 0; rank < decoding_.size(); ++rank) {
    std::erase_if(decoding_[rank], [&](const DecodeHold& each) { return each.until <= arrival; });
    const std::ptrdiff_t taken = most_at_once(decoding_[rank], hold);
    if (taken >= least) continue;
    best = static_cast<std::int32_t>(rank);
    least = taken;
  }
  return best;
}

bool Controller::sends_keys(const ServedModel& model) const {
  return means_.link && sends_kv(model);
}

std::vector<ReadyBytes> Controller::keys_of(const Asked& asked, const Choice& choice,
                                            int stage) const {
  const PlacedPass whole{choice.start, asked.whole, asked.tokens, asked.tokens};
  return keys_of_passes(asked.served->model,
                        choice.passes.empty() ? std::span{&whole, 1} : std::span{choice.passes},
                        asked.context, stage, means_.sending);
}

Duration Controller::keys_there(const Asked& asked, const Choice& choice) {
  const ServedModel& model = asked.served->model;
  Duration there = choice.end;
  if (!sends_keys(model)) return there;
  const Pipeline& pipeline = asked.served->serving.pipelines[choice.pipeline];
  for (int stage = 0; stage < model.stages; ++stage)
    there = std::max(there, means_.link->end_of(pipeline.ranks[to_size(stage)],
                                                keys_of(asked, choice, stage), *model.decode) +
                                model.decode->latency);
  return there;
}

Duration Controller::first_token_of(const ServedModel& model) const {
  return sends_keys(model) ? model.decode->first_token : Duration{};
}

/// Sends keys and values, holds memory until they are gone, and the place at the decode rank until
/// the first token.
void Controller::send_keys(const Asked& asked, const Choice& choice, Decision& decision) {
  const ServedModel& model = asked.served->model;
  const Pipeline& pipeline = asked.served->serving.pipelines[choice.pipeline];
  const bool sends = sends_keys(model);
  if (!sends && !means_.memory) return;
  const std::int64_t tokens = asked.context + asked.tokens;
  for (int stage = 0; stage < model.stages; ++stage) {
    const std::int32_t rank = pipeline.ranks[to_size(stage)];
    Duration until = choice.end;
    if (sends) until = means_.link->send(rank, keys_of(asked, choice, stage), *model.decode);
    if (!means_.memory) continue;
    decision.held_until.push_back(std::max(until, choice.end));
    means_.memory->forget(rank, decision.arrival);
    means_.memory->hold(rank, choice.start, decision.held_until.back() + means_.held_after,
                        held_memory(model, tokens, stage));
  }
  if (sends)
    decoding_[at(decision.decode_rank)].push_back(
        {choice.start, choice.end + decision.kv + decision.first_token});
}

void send_backlog_keys(std::vector<Decision>& decisions, const std::vector<Served>& served,
                       KvSending sending, KvLink& link) {
  std::vector<Decision*> done;
  for (Decision& each : decisions)
    if (each.is_done() && sends_kv(served[each.model].model)) done.push_back(&each);
  std::ranges::stable_sort(done, {}, [](const Decision* each) { return each->end; });
  std::vector<std::map<std::int32_t, const Pipeline*>> pipelines(served.size());
  for (std::size_t i = 0; i < served.size(); ++i)
    for (const Pipeline& pipeline : served[i].serving.pipelines)
      pipelines[i].emplace(pipeline.number, &pipeline);
  for (Decision* const each : done) {
    const ServedModel& model = served[each->model].model;
    const Pipeline& pipeline = *pipelines[each->model].at(each->pipeline);
    const PlacedPass whole{each->start, each->compute, each->tokens, each->tokens};
    const std::span<const PlacedPass> passes =
        each->passes.empty() ? std::span{&whole, 1} : std::span{each->passes};
    Duration there = each->end;
    for (int stage = 0; stage < model.stages; ++stage)
      there = std::max(there,
                       link.send(pipeline.ranks[to_size(stage)],
                                 keys_of_passes(model, passes, 0, stage, sending), *model.decode) +
                           model.decode->latency);
    each->kv = there - each->end;
    each->first_token = model.decode->first_token;
  }
}

}  // namespace longhaul::prefill
