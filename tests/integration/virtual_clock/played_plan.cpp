#include "played_plan.hpp"

#include <atomic>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "base/random.hpp"
#include "comm/group/thread_group.hpp"
#include "comm/group/virtual_time.hpp"
#include "comm/threads/delayed_transport.hpp"
#include "device/cpu_devices.hpp"
#include "engine/engine.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart = 1000s;

/// One rank runs at a time: on one core their turns pass in a third of the time.
class OnOneCore {
public:
  OnOneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCore(const OnOneCore&) = delete;
  OnOneCore& operator=(const OnOneCore&) = delete;

private:
  cpu_set_t before_{};
};

engine::EngineOptions options_of(const VirtualRun& run) {
  engine::EngineOptions options;
  options.payload = Bytes{256};  // an inbox keeps them: no send waits for its receive
  options.credit = run.credit;
  options.run = run.blocks;
  options.streams = run.streams;
  return options;
}

/// Tells of a block's end later than it was, always by the same of an op.
class LateDevice final : public engine::Device {
public:
  explicit LateDevice(Duration latest) : latest_{latest} {}
  void start(OpId op, TimePoint begin, Duration duration) override {
    running_ = engine::FinishedBlock{op, begin + duration, kNever, begin};
    const auto range = static_cast<std::uint64_t>(latest_.count()) + 1;
    seen_ = running_->due + Duration{static_cast<std::int64_t>(derived_seed(7, index(op)) % range)};
  }
  [[nodiscard]] std::optional<engine::FinishedBlock> finished(TimePoint at) override {
    return running_ && at >= seen_ ? std::exchange(running_, std::nullopt) : std::nullopt;
  }
  [[nodiscard]] TimePoint next_event() const override { return running_ ? seen_ : kNever; }

private:
  Duration latest_;
  std::optional<engine::FinishedBlock> running_;
  TimePoint seen_{};
};

/// One rank's part of a run.
class PlayedRank {
public:
  PlayedRank(const Plan& plan, const VirtualRun& run)
      : plan_{plan},
        options_{options_of(run)},
        ranks_{engine::WatchdogOptions{}, run.ranks_per_host},
        control_{run.control ? run.control(ranks_.self()) : nullptr},
        late_{run.latest} {
    if (run.hop + run.payload > Duration::zero())
      ranks_.carry_payloads_by(std::make_unique<comm::DelayedTransport>(
          ranks_.world(), ranks_.host_transport(), run.hop, run.payload));
    ranks_.watchdog().watch(&plan, 1h);
    engine::Device& device =
        run.latest > Duration::zero() ? static_cast<engine::Device&>(late_) : device_;
    engine_.emplace(plan, ranks_, device, options_);
  }

  void play(comm::VirtualTime& time, const plan::WeatherOfIteration& at,
            std::vector<PlayedByEngine>& played) {
    const engine::PlayedWeather weather{at.weather, kStart - at.begin};
    std::vector<engine::IterationResult> results;
    ranks_.world().barrier();  // who has failed until here ends the others' wait
    {
      const comm::VirtualTime::Member member{time, static_cast<int>(ranks_.self())};
      for (std::size_t i = 0; i < played.size(); ++i)
        results.push_back(engine_->run(static_cast<int>(at.iteration + i), weather));
    }
    for (std::size_t i = 0; i < played.size(); ++i)
      note(results[i], weather.start + results[i].weather_age, played[i]);
    if (ranks_.is_first())
      for (std::size_t i = 0; i < played.size(); ++i) played[i].begin = results[i].weather_age;
    ranks_.world().barrier();  // before buffers go
  }
  void play_stream(comm::VirtualTime& time, const plan::Stream& stream, PlayedStream& played) {
    ranks_.world().barrier();
    {
      const comm::VirtualTime::Member member{time, static_cast<int>(ranks_.self())};
      int next = stream.first;
      engine_->run_stream(
          stream, 0,
          [&](const engine::IterationResult& result) {
            EXPECT_EQ(result.iteration, next++);
            note(result, played.iterations[static_cast<std::size_t>(result.iteration)]);
          },
          {}, control_.get());
      EXPECT_EQ(next, stream.iterations);
    }
    if (ranks_.is_first()) played.most_live_iterations = engine_->most_live_iterations();
    ranks_.world().barrier();  // before buffers go
  }
  [[nodiscard]] std::int64_t wrong() const { return wrong_; }

private:
  void note(const engine::IterationResult& result, OpResults& all) {
    wrong_ += result.checks.wrong();
    const OpRange mine = ops_of_rank(plan_, ranks_.self());
    for (std::uint32_t i = mine.first; i < mine.first + mine.count; ++i) {
      if (!result.outcomes.empty()) all.outcomes[i] = result.outcomes[i];
      if (!result.versions.empty()) all.versions[i] = result.versions[i];
      if (all.outcomes[i] == Outcome::skipped || all.outcomes[i] == Outcome::undrawn) continue;
      all.times[i] = result.times[i];
      for (Duration* stamp : {&all.times[i].ready, &all.times[i].start, &all.times[i].end})
        *stamp -= kStart;
    }
  }
  void note(const engine::IterationResult& result, TimePoint began, PlayedByEngine& played) {
    wrong_ += result.checks.wrong();
    played.ends[index(ranks_.self())] = {result.end.seen - began, result.end.shadow - began};
    std::atomic_ref{played.credited} += result.credit.credited;
    OpTimes& all = played.times;
    const OpRange mine = ops_of_rank(plan_, ranks_.self());
    for (std::uint32_t i = mine.first; i < mine.first + mine.count; ++i) {
      all[i] = result.times[i];
      for (Duration* stamp : {&all[i].ready, &all[i].start, &all[i].end}) *stamp -= began;
    }
  }

  const Plan& plan_;
  engine::EngineOptions options_;
  engine::Ranks ranks_;
  std::unique_ptr<engine::StreamControl> control_;
  device::TimedDevice device_;
  LateDevice late_;
  std::optional<engine::Engine> engine_;
  std::int64_t wrong_ = 0;
};

/// The moment of the event that bound an op, by the simulated times.
Duration moment(const Plan& plan, std::uint32_t id, const OpTime& bound, const OpTimes& times) {
  if (bound.bound_kind == BoundKind::start) return {};
  const Op& op = plan.ops[id];
  const OpTime& by = times[index(bound.bound_by)];
  const bool is_send = op.kind == OpKind::send;
  const bool is_other_side = op.kind == OpKind::recv && op.match == index(bound.bound_by);
  switch (bound.bound_kind) {
    case BoundKind::dependency: return is_other_side ? by.start : by.end;
    case BoundKind::lane: return is_send ? by.start : by.end;
    case BoundKind::rendezvous: return by.ready;
    case BoundKind::resource:
    case BoundKind::start: break;
  }
  return by.end;
}

bool same_bound(const Plan& plan, std::uint32_t id, const OpTime& got, const OpTimes& simulated) {
  const OpTime& want = simulated[id];
  if (got.bound_by == want.bound_by && got.bound_kind == want.bound_kind) return true;
  return moment(plan, id, got, simulated) == want.start &&
         moment(plan, id, want, simulated) == want.start;
}

std::string text_of(const OpTime& time) {
  return fmt::format("ready {}, start {}, end {}, bound by {} ({})", time.ready.count(),
                     time.start.count(), time.end.count(), index(time.bound_by),
                     to_string(time.bound_kind));
}

}  // namespace

std::vector<PlayedByEngine> play(const Plan& plan, const plan::WeatherOfIteration& at,
                                 const VirtualRun& run) {
  const int ranks = static_cast<int>(plan.ranks.size());
  comm::VirtualTime time{ranks, kStart, run.order_seed};
  std::vector<PlayedByEngine> played(static_cast<std::size_t>(run.iterations),
                                     {{}, OpTimes(plan.ops.size()), {}, 0});
  for (PlayedByEngine& each : played) each.ends.resize(plan.ranks.size());
  std::atomic<std::int64_t> wrong = 0;
  const OnOneCore here;
  comm::run_thread_ranks(ranks, [&] {
    PlayedRank rank{plan, run};
    rank.play(time, at, played);
    wrong += rank.wrong();
  });
  EXPECT_EQ(wrong, 0);
  return played;
}

PlayedStream play_stream(const Plan& plan, const plan::Stream& stream, const VirtualRun& run) {
  const int ranks = static_cast<int>(plan.ranks.size());
  comm::VirtualTime time{ranks, kStart, run.order_seed};
  const std::size_t ops = plan.ops.size();
  PlayedStream played;
  played.iterations.resize(
      static_cast<std::size_t>(stream.iterations),
      {OpTimes(ops), std::vector<Outcome>(ops, Outcome::ran), std::vector<std::int32_t>(ops, -1)});
  std::atomic<std::int64_t> wrong = 0;
  const OnOneCore here;
  comm::run_thread_ranks(ranks, [&] {
    VirtualRun streaming = run;
    streaming.streams = true;
    PlayedRank rank{plan, streaming};
    rank.play_stream(time, stream, played);
    wrong += rank.wrong();
  });
  EXPECT_EQ(wrong, 0);
  return played;
}

std::string difference(const Plan& plan, const OpTimes& played, const OpTimes& simulated,
                       Bounds bounds) {
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const OpTime& got = played[i];
    const OpTime& want = simulated[i];
    const bool same = got.ready == want.ready && got.start == want.start && got.end == want.end &&
                      (bounds == Bounds::any || same_bound(plan, i, got, simulated));
    if (!same)
      return fmt::format("op {}, {}: {}; simulated: {}", i, to_text(plan, OpId{i}), text_of(got),
                         text_of(want));
  }
  return "";
}

}  // namespace longhaul::testing
