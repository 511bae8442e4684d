#include "prefill/play/play.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/index.hpp"
#include "prefill/play/played_training.hpp"
#include "prefill/prompt/memory_over_time.hpp"

namespace longhaul::prefill {
namespace {

/// A stage of a pass on its GPU.
struct PlayedStage {
  std::size_t pass = 0;
  int stage = 0;
  std::int32_t rank = 0;
  Duration planned{};  ///< start
  Duration estimate{};
};

/// A pass: the answers that it computes something of, and its stages.
struct PlayedPass {
  std::vector<std::size_t> decisions;
  std::size_t model = 0;
  Duration planned{}, time{};
  Duration ready{};                   ///< of its next stage
  int done = 0;                       ///< stages
  std::optional<std::size_t> before;  ///< the pass of the same prompt that it waits for
  bool is_over = false, is_killed = false;
  std::vector<std::int32_t> ranks;
};

/// The passes of all answers; what several prompts share once. Pipelines of two models may have one
/// number.
std::vector<PlayedPass> played_passes(const std::vector<Served>& served,
                                      const std::vector<Decision>& decisions) {
  std::vector<PlayedPass> passes;
  std::map<std::tuple<std::size_t, std::int32_t, Duration>, std::size_t> shared;
  const auto pipeline_of = [&](const Decision& decision) -> const Pipeline& {
    return *std::ranges::find(served[decision.model].serving.pipelines, decision.pipeline,
                              &Pipeline::number);
  };
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Decision& decision = decisions[i];
    if (decision.refused) continue;
    std::vector<PlacedPass> own = decision.passes;
    if (own.empty()) own.push_back({decision.start, decision.compute, 0, 0});
    std::optional<std::size_t> before;
    for (const PlacedPass& pass : own) {
      const auto [place, is_new] =
          shared.try_emplace({decision.model, decision.pipeline, pass.start}, passes.size());
      if (is_new)
        passes.push_back({.decisions = {},
                          .model = decision.model,
                          .planned = pass.start,
                          .time = pass.time,
                          .before = {},
                          .ranks = pipeline_of(decision).ranks});
      PlayedPass& played = passes[place->second];
      played.decisions.push_back(i);
      played.ready = std::max(played.ready, decision.arrival + decision.network / 2);
      if (before) played.before = before;
      before = place->second;
    }
  }
  return passes;
}

/// Plays the passes beside training: what PlayedTraining asks when a GPU has nothing to compute.
class PrefillPlay : public IdleGpu {
public:
  PrefillPlay(const TrainingGraph& graph, const std::vector<Served>& served,
              const std::vector<Decision>& decisions, const PlayedTimes& times,
              const PlayOptions& options)
      : served_{served},
        times_{times},
        options_{options},
        passes_{played_passes(served, decisions)},
        queues_(to_size(graph.gpus())),
        open_since_(to_size(graph.gpus())) {
    outcome_.decisions = decisions;
    outcome_.prefills.resize(queues_.size());
    outcome_.declined_idle.resize(queues_.size());
    for (std::size_t i = 0; i < passes_.size(); ++i)
      for (int stage = 0; stage < std::ssize(passes_[i].ranks); ++stage)
        queues_[at(passes_[i].ranks[to_size(stage)])].push_back(
            {i, stage, passes_[i].ranks[to_size(stage)],
             passes_[i].planned + stage_offset(model(i), passes_[i].time, stage),
             model(i).stage_time(passes_[i].time, stage)});
    for (auto& queue : queues_) std::ranges::stable_sort(queue, {}, &PlayedStage::planned);
  }

  /// What GPU `rank` starts now, or when to ask again.
  Offer next(std::int32_t rank, Duration now, const PlayedTraining& training) override {
    auto& queue = queues_[at(rank)];
    std::optional<Duration> later, block;
    bool declined = false;
    for (std::size_t i = 0; i < std::min<std::size_t>(queue.size(), kMostLookedAt); ++i) {
      const PlayedStage& stage = queue[i];
      PlayedPass& pass = passes_[stage.pass];
      if (pass.is_killed) {
        queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i--));
        continue;
      }
      const auto from = ready(stage, training);
      if (!from || *from == Duration::max()) continue;
      if (*from > now) {
        later = std::min(later.value_or(*from), *from);
        continue;
      }
      if (!options_.careless && !block) block = training.next_block(rank, now, options_.signals);
      if (block && now + stage.estimate + model(stage.pass).guard > *block) {
        declined = true;
        ++outcome_.declined;
        continue;
      }
      const PlayedStage chosen = stage;
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(i));
      return start(chosen, now);
    }
    if (declined && !open_since_[at(rank)]) open_since_[at(rank)] = now;
    return {.again = later};
  }

  void block_begins(std::int32_t rank, Duration now) override {
    auto& since = open_since_[at(rank)];
    if (since && now > *since)
      outcome_.declined_idle[at(rank)].push_back({*since, now, IdleCause::declined});
    since.reset();
  }

  /// A prefill ended; or it was stopped when a block was ready.
  void ended(std::int32_t rank, Duration start, Duration end, bool is_stopped) override {
    const PlayedStage stage = *running_[rank];
    running_.erase(rank);
    outcome_.filled += end - start;
    outcome_.prefills[at(rank)].push_back({start, end});
    PlayedPass& pass = passes_[stage.pass];
    if (is_stopped) {
      pass.is_killed = true;
      for (const std::size_t i : pass.decisions) kill(i);
      return;
    }
    ++pass.done;
    pass.ready = end + model(stage.pass).hop;
    for (const std::size_t i : pass.decisions) {
      Decision& decision = outcome_.decisions[i];
      if (stage.stage == 0 && is_first_pass(i, stage.pass)) decision.start = start;
      decision.end = end;
    }
    pass.is_over = pass.done == std::ssize(pass.ranks);
  }

  [[nodiscard]] Duration stops_at(std::int32_t rank, Duration start, Duration end,
                                  Duration now) const override {
    if (options_.overrun == Overrun::finish) return end;
    const PlayedStage& stage = *running_.at(rank);
    const int layers = std::max(1, layers_of_stage(model(stage.pass), stage.stage));
    const Duration layer = std::max(Duration{1}, (end - start) / layers);
    return std::min(end, start + (now - start + layer - Duration{1}) / layer * layer);
  }

  PlayOutcome take_outcome() {
    for (std::size_t i = 0; i < passes_.size(); ++i)
      if (!passes_[i].is_over && !passes_[i].is_killed)
        for (const std::size_t each : passes_[i].decisions)
          if (!is_killed(each)) outcome_.decisions[each].unfinished = true;
    return std::move(outcome_);
  }

private:
  static constexpr std::size_t kMostLookedAt = 16;

  [[nodiscard]] const ServedModel& model(std::size_t pass) const {
    return served_[passes_[pass].model].model;
  }
  [[nodiscard]] bool is_first_pass(std::size_t decision, std::size_t pass) const {
    return !passes_[pass].before ||
           std::ranges::find(passes_[*passes_[pass].before].decisions, decision) ==
               passes_[*passes_[pass].before].decisions.end();
  }
  /// From when on the stage may start; nullopt: what it waits for is not over.
  [[nodiscard]] std::optional<Duration> ready(const PlayedStage& stage,
                                              const PlayedTraining& training) const {
    const PlayedPass& pass = passes_[stage.pass];
    if (stage.stage != pass.done) return std::nullopt;
    if (pass.before && !passes_[*pass.before].is_over) return std::nullopt;
    if (options_.signals != Signals::plan || options_.careless) return pass.ready;
    // By the plan alone: so long after the iteration's begin as it was placed.
    return std::max(pass.ready, training.planned_to_played(stage.planned));
  }
  Offer start(const PlayedStage& stage, Duration now) {
    Duration time{};
    for (const std::size_t i : passes_[stage.pass].decisions)
      time = std::max(time, times_.prefill_time(outcome_.decisions[i].request, stage.estimate));
    running_[stage.rank] = stage;
    block_begins(stage.rank, now);  // whatever was declined before, the GPU is not idle
    return {.starts = true, .end = now + time};
  }
  [[nodiscard]] bool is_killed(std::size_t decision) const { return killed_.contains(decision); }
  void kill(std::size_t decision) {
    if (!killed_.emplace(decision, true).second) return;
    ++outcome_.killed;
    outcome_.decisions[decision].unfinished = true;
    for (PlayedPass& pass : passes_)
      if (pass.decisions.size() == 1 && pass.decisions.front() == decision) pass.is_killed = true;
  }

  const std::vector<Served>& served_;
  const PlayedTimes& times_;
  const PlayOptions& options_;
  std::vector<PlayedPass> passes_;
  std::vector<std::vector<PlayedStage>> queues_;
  std::map<std::int32_t, std::optional<PlayedStage>> running_;
  std::vector<std::optional<Duration>> open_since_;
  std::map<std::size_t, bool> killed_;
  PlayOutcome outcome_;
};

/// The run without prefills.
class NoPrefill : public IdleGpu {
public:
  Offer next(std::int32_t, Duration, const PlayedTraining&) override { return {}; }
  void block_begins(std::int32_t, Duration) override {}
  void ended(std::int32_t, Duration, Duration, bool) override {}
  [[nodiscard]] Duration stops_at(std::int32_t, Duration, Duration end, Duration) const override {
    return end;
  }
};

}  // namespace

PlayOutcome play_prefills(const TrainingGraph& graph, const std::vector<Served>& served,
                          const std::vector<Decision>& decisions, const PlayedTimes& times,
                          const PlayOptions& options) {
  NoPrefill nothing;
  PlayedTraining without{graph, times, nothing};
  without.run(options.iterations);
  PrefillPlay play{graph, served, decisions, times, options};
  PlayedTraining with{graph, times, play};
  with.run(options.iterations);
  PlayOutcome outcome = play.take_outcome();
  outcome.wall = with.wall();
  outcome.busy = with.busy();
  outcome.delay = with.wall() - without.wall();
  outcome.blocks_bound = with.blocks_bound();
  for (std::size_t i = 0; i < with.starts().size(); ++i)
    outcome.blocks_late += with.starts()[i] > without.starts()[i];
  outcome.blocks = with.blocks();
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const Decision& played = outcome.decisions[i];
    outcome.late += played.is_done() && (played.end > decisions[i].end ||
                                         played.misses_slo(served[played.model].model));
  }
  return outcome;
}

}  // namespace longhaul::prefill
