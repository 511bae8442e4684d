#include "harness/prefill/live_pairs.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <type_traits>

#include "base/index.hpp"
#include "plan/rows.hpp"
#include "sim/simulate.hpp"

namespace longhaul::harness {
namespace {

/// As a stretch begins on 2 cores that 16 ranks share: 3.2 to 6.1 ms.
constexpr Duration kHeardAfter = std::chrono::milliseconds{5};

using prefill::BegunSlot;
using prefill::LivePlaced;

/// A placement as bytes: what a Decision of a prompt in one pass has.
struct PlacedBytes {
  std::int64_t request = 0, tokens = 0, model = 0;
  std::int64_t arrival = 0, start = 0, end = 0, compute = 0, hops = 0;
  std::int64_t number = 0, pipeline = 0, answer = 0, told = 0;

  [[nodiscard]] static PlacedBytes of(const LivePlaced& placed) {
    const prefill::Decision& own = placed.decision;
    return {own.request,
            own.tokens,
            static_cast<std::int64_t>(own.model),
            own.arrival.count(),
            own.start.count(),
            own.end.count(),
            own.compute.count(),
            own.hops.count(),
            own.pipeline,
            placed.pipeline,
            static_cast<std::int64_t>(placed.answer),
            placed.told.count()};
  }
  [[nodiscard]] LivePlaced placed() const {
    LivePlaced placed{.decision = {.request = request, .arrival = Duration{arrival}},
                      .pipeline = static_cast<std::int32_t>(pipeline),
                      .answer = static_cast<std::size_t>(answer),
                      .told = Duration{told}};
    prefill::Decision& own = placed.decision;
    own.tokens = tokens;
    own.model = static_cast<std::size_t>(model);
    own.start = Duration{start};
    own.end = Duration{end};
    own.compute = Duration{compute};
    own.hops = Duration{hops};
    own.pipeline = static_cast<std::int32_t>(number);
    return placed;
  }
};

template <typename Value>
std::string text_of_values(std::span<const Value> values) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const auto bytes = std::as_bytes(values);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
template <typename Value>
std::vector<Value> values_of_text(std::span<const char> text) {
  std::vector<Value> values(text.size() / sizeof(Value));
  if (!text.empty()) std::memcpy(values.data(), text.data(), values.size() * sizeof(Value));
  return values;
}

/// All ranks get what all ranks have begun.
template <typename What>
std::vector<What> gather_drawn(const engine::Ranks& ranks, const std::vector<What>& mine) {
  std::vector<int> counts;
  const auto all = ranks.world().gather(std::as_bytes(std::span{mine}), counts);
  const std::string text =
      ranks.world().broadcast({reinterpret_cast<const char*>(all.data()), all.size()});
  return values_of_text<What>(text);
}

/// All ranks get those of `root`.
std::vector<LivePlaced> broadcast_placed(const engine::Ranks& ranks,
                                         const std::vector<LivePlaced>& mine, int root) {
  std::vector<PlacedBytes> bytes;
  for (const LivePlaced& each : mine) bytes.push_back(PlacedBytes::of(each));
  const std::string text = ranks.world().broadcast(text_of_values<PlacedBytes>(bytes), root);
  std::vector<LivePlaced> placed;
  for (const PlacedBytes& each : values_of_text<PlacedBytes>(text)) placed.push_back(each.placed());
  return placed;
}

prefill::LiveOptions live_options(const PlannedStretches& planned, const PrefillSettings& settings,
                                  const prefill::RealTimes& times, prefill::DrawListener* listener,
                                  std::function<bool()> closes) {
  prefill::LiveOptions options;
  options.controller.closes = std::move(closes);
  options.listener = listener;
  options.controller.policy = settings.policy;
  options.controller.heard_after = kHeardAfter;
  options.controller.backlog = settings.backlog;
  options.controller.stretches = settings.pairs;
  for (const GoneController& each : settings.gone)
    options.controller.deaths.push_back({datacenter_of(planned.scenario, each), each.at});
  options.manners.gives_way = settings.manners == prefill::Manners::gives_way;
  options.manners.overrun = settings.overrun;
  options.manners.expects = {settings.signals, settings.stretch};
  options.controller.expects = options.manners.expects;
  if (planned.sends_kv()) options.kv = settings.kv;
  if (planned.limits_memory()) options.memory = planned.memory;
  options.manners.takes = [&planned, &times](std::size_t model, std::int32_t request,
                                             Duration whole) {
    return times.of(request, whole, planned.served[model].model.noise);
  };
  return options;
}

}  // namespace

LivePairs::LivePairs(const PlannedStretches& planned, const PrefillSettings& settings,
                     prefill::Arrivals* arrivals, prefill::DrawListener* listener,
                     std::function<bool()> closes)
    : planned_{planned},
      real_times_{planned.requests,
                  settings.backlog ? prefill::RealTimes::Load::backlog
                                   : prefill::RealTimes::Load::open_loop,
                  planned.scenario.run.seed},
      arrivals_{settings.backlog ? std::vector<prefill::Request>{} : planned.requests},
      stretches_{planned.training,
                 planned.predicted,
                 planned.bubbles,
                 planned.served,
                 planned.requests,
                 arrivals == nullptr ? arrivals_ : *arrivals,
                 Rank{planned.scenario.training_ranks()},
                 live_options(planned, settings, real_times_, listener, std::move(closes))},
      run_{planned.scenario.run} {
  opened_.demand = {.backlog = settings.backlog.has_value(), .is_live = true};
  opened_.filled.plan = stretches_.plan();
  opened_.filled.plan.schedule += "+prefill";
  opened_.filled.training = stretches_.live().training;
  opened_.predicted.times.resize(opened_.filled.plan.ops.size());
  for (std::size_t i = 0; i < planned.predicted.size(); ++i)
    opened_.predicted.times[index(opened_.filled.training[i])] = planned.predicted[i];
}

const FilledStretch& LivePairs::open() {
  stretches_.begin();
  return opened_;
}

Duration LivePairs::wall_of(const OpResults& results) const {
  Duration wall{};
  for (const OpId op : stretches_.live().training)
    wall = std::max(wall, results.times[index(op)].end);
  return wall;
}

/// When each prompt had its last stage, or its first token, of those that did.
std::map<std::int32_t, Duration> LivePairs::ends_of(const Drawn& drawn,
                                                    const OpResults& results) const {
  std::map<std::int32_t, Duration> ends;
  const auto note = [&](std::int32_t request, std::size_t op) {
    if (results.outcomes.empty() || has_run(results.outcomes[op]))
      ends[request] = results.times[op].end;
  };
  const prefill::LivePlan& live = stretches_.live();
  for (const BegunSlot& each : drawn.begun) {
    const std::size_t model = live.pipelines[to_size(each.pipeline)].model;
    if (!live.decodes.empty() && prefill::sends_kv(planned_.served[model].model)) continue;
    const prefill::SlotStage& last = live.slot(each.pipeline, each.slot).back();
    note(each.request, index(last.first) + to_size(last.parts) - 1);
  }
  for (const prefill::DrawnToken& each : drawn.tokens) note(each.request, each.op);
  return ends;
}

std::vector<LivePlaced> LivePairs::end_stretch(const std::vector<BegunSlot>& begun, Duration wall,
                                               const std::map<std::int32_t, Duration>& ended) {
  std::set<std::int32_t> requests;
  for (const BegunSlot& each : begun) requests.insert(each.request);
  const Duration clock = stretches_.controller().clock();
  auto placed = stretches_.controller().end_stretch(wall, requests, ended);
  for (const LivePlaced& each : placed) {
    answers_.push_back(each.decision);
    for (Duration* time : {&answers_.back().arrival, &answers_.back().start, &answers_.back().end})
      *time += clock;
  }
  return placed;
}

std::vector<LivePlaced> LivePairs::waiting(Duration wall) const {
  std::vector<LivePlaced> waiting;
  for (const prefill::Decision& each : stretches_.controller().waiting()) {
    waiting.push_back({.decision = each});
    waiting.back().decision.arrival -= stretches_.controller().clock() - wall;
  }
  return waiting;
}

FilledStretch LivePairs::filled(const Drawn& drawn, const std::vector<LivePlaced>& placed,
                                const std::vector<LivePlaced>& waiting) const {
  auto slots = prefill::fill_slots(stretches_.live(), planned_.served, drawn.begun, placed,
                                   drawn.sent, drawn.tokens);
  FilledStretch stretch;
  stretch.demand = opened_.demand;
  for (const LivePlaced& each : waiting) stretch.demand.waiting.push_back(each.decision);
  stretch.filled = std::move(slots.filled);
  stretch.filled.plan.schedule += "+prefill";
  // Rows name a replica and a device, of which ranks that serve have neither.
  for (RankInfo& rank : stretch.filled.plan.ranks) {
    if (rank.role == RankRole::training) continue;
    rank.replica = ReplicaId{0};
    rank.device = DeviceId{0};
  }
  stretch.decisions = std::move(slots.decisions);
  stretch.answers = std::move(slots.answers);
  stretch.told = std::move(slots.told);
  return stretch;
}

FilledStretch LivePairs::close(const engine::Ranks& ranks, const OpResults& results) {
  const Drawn drawn{gather_drawn(ranks, stretches_.begun()), gather_drawn(ranks, stretches_.sent()),
                    gather_drawn(ranks, stretches_.tokens())};
  const Duration own = ranks.is_first() ? wall_of(results) : Duration{};
  const Duration all{ranks.world().maximum(own.count())};
  std::string ends;
  if (ranks.is_first())
    for (const auto& [request, end] : ends_of(drawn, results))
      ends += text_of_values<std::int64_t>(std::array<std::int64_t, 2>{request, end.count()});
  std::map<std::int32_t, Duration> ended;
  const auto words = values_of_text<std::int64_t>(ranks.world().broadcast(std::move(ends)));
  for (std::size_t i = 0; i < words.size(); i += 2)
    ended[static_cast<std::int32_t>(words[i])] = Duration{words[i + 1]};
  const int controller = planned_.scenario.training_ranks();
  std::vector<LivePlaced> placed, waiting;
  if (index(ranks.self()) == to_size(controller)) {
    placed = end_stretch(drawn.begun, all, ended);
    waiting = this->waiting(all);
  }
  placed = broadcast_placed(ranks, placed, controller);
  waiting = broadcast_placed(ranks, waiting, controller);
  FilledStretch stretch = filled(drawn, placed, waiting);
  const prefill::LiveTally mine = stretches_.tally();
  stretch.tally = {
      .declined = ranks.world().sum(mine.declined),
      .killed = ranks.world().sum(mine.killed),
      .late_answers = ranks.world().sum(mine.late_answers),
      .latest_answer = Duration{ranks.world().maximum(mine.latest_answer.count())},
      .longest_decision = Duration{ranks.world().maximum(mine.longest_decision.count())}};
  return stretch;
}

FilledStretch LivePairs::simulate(int number) {
  stretches_.begin();
  OpResults results = sim::simulate_results(plan::with_noise(stretches_.live().plan, run_, number));
  const Drawn drawn{stretches_.begun(), stretches_.sent(), stretches_.tokens()};
  const Duration wall = wall_of(results);
  const auto placed = end_stretch(drawn.begun, wall, ends_of(drawn, results));
  FilledStretch stretch = filled(drawn, placed, waiting(wall));
  stretch.predicted = std::move(results);
  stretch.tally = stretches_.tally();
  return stretch;
}

std::vector<prefill::Decision> LivePairs::answers() {
  stretches_.controller().close();
  std::vector<prefill::Decision> all = answers_;
  const auto& refused = stretches_.controller().refused();
  all.insert(all.end(), refused.begin(), refused.end());
  std::ranges::sort(all, {}, &prefill::Decision::request);
  return all;
}

ShortOfSlices short_of_slices(const PlannedStretches& planned, const PrefillSettings& settings) {
  ShortOfSlices found;
  if (settings.controller != PrefillController::live || !planned.sends_kv()) return found;
  const int slots = prefill::slots_of(planned.bubbles, planned.served);
  for (const std::int64_t each :
       prefill::slices_of(planned.bubbles, planned.served, settings.kv, slots)) {
    if (each <= prefill::kMostLiveSlices) continue;
    ++found.gpus;
    found.most = std::max(found.most, each);
  }
  return found;
}

std::string warning_of(const ShortOfSlices& found) {
  if (found.gpus == 0) return {};
  return fmt::format(
      "{} of the GPUs could have as many as {} slices of keys and values to send in a stretch, and "
      "a live run has {} for each (prompts without one wait for the next stretch). Make slices "
      "larger: --set prefill.decode.slice=64MiB.",
      found.gpus, found.most, prefill::kMostLiveSlices);
}

LivePrediction predict_live(const PlannedStretches& planned, const PrefillSettings& settings) {
  PrefillSettings sound = settings;
  sound.gone.clear();
  LivePairs pairs{planned, sound};
  LivePrediction predicted;
  for (int pair = 0; pair < settings.pairs; ++pair)
    predicted.stretches.push_back(pairs.simulate(pair));
  predicted.answers = pairs.answers();
  predicted.offered = pairs.offered();
  return predicted;
}

}  // namespace longhaul::harness
