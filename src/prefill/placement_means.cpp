#include <algorithm>

#include "base/index.hpp"
#include "prefill/placement.hpp"

namespace longhaul::prefill {
namespace {

constexpr int kStepsOfPeriod = 16;

}  // namespace

bool Controller::has_memory(const Asked& asked, const Choice& choice) const {
  if (!means_.memory) return true;
  const ServedModel& model = asked.served->model;
  const Pipeline& pipeline = asked.served->serving.pipelines[choice.pipeline];
  const std::int64_t tokens = asked.context + asked.tokens;
  const std::int64_t in_pass = model.chunk > 0 ? std::min(model.chunk, tokens) : tokens;
  for (int stage = 0; stage < model.stages; ++stage) {
    const auto free =
        means_.memory->least_free(pipeline.ranks[to_size(stage)], choice.start, choice.end);
    if (free && *free < prompt_memory(model, tokens, in_pass, stage)) return false;
  }
  return true;
}

Bytes Controller::lacking_memory(const Asked& asked) const {
  if (!means_.memory) return {};
  const ServedModel& model = asked.served->model;
  const std::int64_t tokens = asked.context + asked.tokens;
  const std::int64_t in_pass = model.chunk > 0 ? std::min(model.chunk, tokens) : tokens;
  Bytes least{INT64_MAX};
  for (const Pipeline& pipeline : asked.served->serving.pipelines) {
    Bytes lacks;
    for (int stage = 0; stage < model.stages; ++stage)
      if (const auto most = means_.memory->most_free(pipeline.ranks[to_size(stage)]))
        lacks = std::max(lacks, prompt_memory(model, tokens, in_pass, stage) - *most);
    least = std::min(least, lacks);
    if (least <= Bytes{}) return {};
  }
  return least == Bytes{INT64_MAX} ? Bytes{} : least;
}

/// The best choice that memory allows: pipelines whose memory is taken at that time are left out,
/// and where all are, the request waits for the first release, as often as it takes: each is later
/// than the one before. Where nothing is held any more it goes on through a period, and then ends.
std::optional<Controller::Choice> Controller::choose_within_memory(Asked asked) {
  const auto& pipelines = asked.served->serving.pipelines;
  bool waited = false;
  for (int steps = 0; steps < kStepsOfPeriod;) {
    std::vector<bool> without;
    std::optional<Duration> release;
    for (;;) {
      auto choice = choose(asked, without);
      if (!choice) break;
      if (has_memory(asked, *choice)) {
        choice->waited_for_memory = waited || !without.empty();
        return choice;
      }
      without.resize(pipelines.size());
      without[choice->pipeline] = true;
      for (const std::int32_t rank : pipelines[choice->pipeline].ranks)
        if (const auto next = means_.memory->next_release(rank, choice->start))
          release = std::min(release.value_or(*next), *next);
    }
    // Training's own activations may be what is in the way: later in the iteration they are less.
    if (without.empty()) return std::nullopt;
    asked.from = release.value_or(asked.from + free_.period() / kStepsOfPeriod);
    steps += release ? 0 : 1;
    waited = true;
  }
  return std::nullopt;
}

/// The decode rank that has the most places free at `from`; no later request arrives before this
/// one.
std::optional<std::int32_t> Controller::free_decode_rank(const ServedModel& model, Duration arrival,
                                                         Duration from) {
  std::optional<std::int32_t> best;
  std::ptrdiff_t least = model.decode->slots;
  for (std::size_t rank = 0; rank < decoding_.size(); ++rank) {
    std::erase_if(decoding_[rank], [&](Duration until) { return until <= arrival; });
    const auto taken =
        std::ranges::count_if(decoding_[rank], [&](Duration until) { return until > from; });
    if (taken >= least) continue;
    best = static_cast<std::int32_t>(rank);
    least = taken;
  }
  return best;
}

/// Sends keys and values, holds memory until they are gone, and the place at the decode rank until
/// the first token.
void Controller::send_keys(const Asked& asked, const Choice& choice, Decision& decision) {
  const ServedModel& model = asked.served->model;
  const Pipeline& pipeline = asked.served->serving.pipelines[choice.pipeline];
  const bool sends = model.decode && means_.link && model.dimensions;
  if (!sends && !means_.memory) return;
  std::vector<PlacedPass> passes = choice.passes;
  if (passes.empty()) passes.push_back({choice.start, asked.whole, asked.tokens, asked.tokens});
  Duration arrived = choice.end;
  for (int stage = 0; stage < model.stages; ++stage) {
    Duration until = choice.end;
    if (sends) {
      std::vector<ReadyBytes> ready;
      // A cached prefix is sent with the first pass: the decode rank has none of it.
      std::int64_t before = asked.context;
      for (const PlacedPass& pass : passes) {
        const auto layers = ready_layers(stage_kv(model, pass.tokens + before, stage),
                                         layers_of_stage(model, stage),
                                         pass.start + stage_offset(model, pass.time, stage),
                                         model.stage_time(pass.time, stage), means_.sending);
        ready.insert(ready.end(), layers.begin(), layers.end());
        before = 0;
      }
      if (means_.sending == KvSending::whole)
        for (ReadyBytes& part : ready) part.at = ready.back().at;
      until = means_.link->send(pipeline.ranks[to_size(stage)], ready, *model.decode);
      arrived = std::max(arrived, until + model.decode->latency);
    }
    if (!means_.memory) continue;
    means_.memory->forget(pipeline.ranks[to_size(stage)], decision.arrival);
    means_.memory->hold(
        pipeline.ranks[to_size(stage)], choice.start, std::max(until, choice.end),
        prompt_memory(model, asked.context + asked.tokens, passes.front().in_pass, stage));
  }
  if (!sends) return;
  decision.kv = arrived - choice.end;
  decision.first_token = model.decode->first_token;
  decoding_[at(decision.decode_rank)].push_back(arrived + decision.first_token);
}

}  // namespace longhaul::prefill
