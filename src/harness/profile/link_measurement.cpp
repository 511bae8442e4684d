#include "harness/profile/link_measurement.hpp"

#include <cstring>
#include <optional>
#include <sstream>

#include <fmt/format.h>

#include "base/program/command_words.hpp"
#include "base/program/program.hpp"
#include "base/unit_text.hpp"
#include "engine/engine.hpp"
#include "harness/profile/plan_builder.hpp"

namespace longhaul::harness {
namespace {

/// Rounds of ping-pong between `a` and `b`; the first is a warm-up. On a GPU a block of no time
/// takes what was received: its compute stream is where latencies are waited out.
void add_ping_pong(PlanBuilder& builder, int a, int b, Duration latency, int rounds,
                   const LinkSettings& settings) {
  const auto taken = [&](int rank, const PlanBuilder::Message& message, int round) {
    if (settings.device == DeviceKind::cpu) return message.recv;
    const auto block = builder.block(rank, Duration::zero(), MicrobatchId{round});
    builder.after(block, message.recv);
    return block;
  };
  std::optional<PlanBuilder::Handle> last;
  for (int i = 0; i <= rounds; ++i) {
    const auto ping = builder.message(a, b, Duration::zero(), latency, settings.size);
    const auto pong = builder.message(b, a, Duration::zero(), latency, settings.size);
    if (last) builder.after(ping.send, *last);
    builder.after(pong.send, taken(b, ping, i));
    last = taken(a, pong, i);
  }
}

/// One pair of ranks k and k + ranks/2 each, all at the same time.
Plan make_plan(LinkTest test, Duration target, int ranks, const LinkSettings& settings) {
  PlanBuilder builder{fmt::format("{} {}", to_string(test), to_text(target)), ranks};
  for (int a = 0; a < ranks / 2; ++a) {
    const int b = a + ranks / 2;
    if (test == LinkTest::latency) {
      add_ping_pong(builder, a, b, target, settings.samples, settings);
    } else {
      for (int i = 0; i <= settings.samples + 1; ++i)
        builder.message(a, b, target, Duration::zero(), settings.size);
    }
  }
  return builder.build();
}

/// Samples that this rank can take: half the time from one pong to the next, or the time from one
/// message to the next. Without the first, which starts the chain.
std::vector<std::int64_t> samples_of(LinkTest test, const Plan& plan, Rank self,
                                     const OpTimes& times) {
  const bool asks = index(self) < plan.ranks.size() / 2;
  std::vector<std::int64_t> samples;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != self || lane.kind != OpKind::recv) continue;
    if ((test == LinkTest::latency) != asks) continue;
    for (std::uint32_t i = test == LinkTest::latency ? 1 : 2; i < lane.count; ++i) {
      const std::size_t at = index(lane.first) + i;
      const Duration gap = times[at].end - times[at - 1].end;
      samples.push_back(test == LinkTest::latency ? gap.count() / 2 : gap.count());
    }
  }
  return samples;
}

/// When a rank began to send, and when the last of what it sent and received was over.
struct Span {
  Duration first_send = Duration::max(), last_send{}, last_receive{};
};

Span span_of(const Plan& plan, Rank self, const OpTimes& times) {
  Span span;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != self || lane.count == 0) continue;
    const OpTime& first = times[index(lane.first)];
    const OpTime& last = times[index(lane.first) + lane.count - 1];
    if (lane.kind == OpKind::send) {
      span.first_send = first.start;
      span.last_send = last.end;
    }
    if (lane.kind == OpKind::recv) span.last_receive = last.end;
  }
  return span;
}

/// The least mean time of a message over all pairs, each with `messages` one after the other.
/// Stamps of two hosts are not compared.
Duration least_mean(LinkTest test, const std::vector<Span>& spans, int messages, bool one_host) {
  Duration least = LinkMeasurement::kNoMean;
  const std::size_t pairs = spans.size() / 2;
  for (std::size_t a = 0; a < pairs; ++a) {
    const Span &sender = spans[a], &receiver = spans[a + pairs];
    const Duration last = test == LinkTest::latency ? sender.last_receive
                          : one_host                ? receiver.last_receive
                                                    : sender.last_send;
    least = std::min(least, (last - sender.first_send) / messages);
  }
  return least;
}

template <typename T>
std::vector<T> gather(const engine::Ranks& ranks, std::span<const T> mine) {
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(mine), counts);
  std::vector<T> all(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

/// Collective: what all ranks can tell; rank 0 gets it.
LinkMeasurement play(LinkTest test, Duration target, engine::Ranks& ranks,
                     const LinkSettings& settings, engine::Checks& checks) {
  const Plan plan = make_plan(test, target, ranks.count(), settings);
  engine::EngineOptions engine_options;
  engine_options.payload = settings.payload;
  engine_options.credit = settings.credit;
  const auto device = make_timed_device(settings.device, ranks, engine_options.credit);
  const auto data_plane = make_data_plane(settings.device, ranks, plan, engine_options);
  ranks.watchdog().watch(&plan, (2 * settings.samples + 4) * target);
  engine::Engine engine{plan, ranks, *device, *data_plane, engine_options};
  const engine::IterationResult result = engine.run(0);
  ranks.watchdog().watch(nullptr, {});
  checks += result.checks;

  const auto mine = samples_of(test, plan, ranks.self(), result.times);
  const Span span = span_of(plan, ranks.self(), result.times);
  LinkMeasurement measurement{test, target, gather<std::int64_t>(ranks, mine), {}};
  const int messages =
      test == LinkTest::latency ? 2 * (settings.samples + 1) : settings.samples + 2;
  measurement.least_mean = least_mean(test, gather<Span>(ranks, std::span{&span, 1}), messages,
                                      ranks.host_ranks().all_local());
  for (const engine::CreditUse& of_rank :
       gather<engine::CreditUse>(ranks, std::span{&result.credit, 1}))
    measurement.credit += of_rank;
  return measurement;
}

}  // namespace

double error_percent(std::int64_t sample_ns, Duration target) {
  return 100.0 * (static_cast<double>(sample_ns) / static_cast<double>(target.count()) - 1.0);
}

std::vector<double> errors_percent(const LinkMeasurement& measurement) {
  std::vector<double> errors;
  for (const std::int64_t sample : measurement.samples_ns)
    errors.push_back(error_percent(sample, measurement.target));
  return errors;
}

LinkMeasurement measure_link(LinkTest test, Duration target, engine::Ranks& ranks,
                             const LinkSettings& settings, engine::Checks& checks) {
  LinkMeasurement measurement = play(test, target, ranks, settings, checks);
  if (measurement.samples_ns.empty()) return measurement;
  if (test == LinkTest::latency)
    for (std::int64_t& sample : measurement.samples_ns) sample -= settings.baseline.count();
  measurement.error_percent = summarize(errors_percent(measurement));
  return measurement;
}

Duration measure_baseline(engine::Ranks& ranks, const LinkSettings& settings,
                          engine::Checks& checks) {
  const auto samples =
      play(LinkTest::latency, Duration::zero(), ranks, settings, checks).samples_ns;
  if (samples.empty()) return Duration::zero();
  return Duration{static_cast<std::int64_t>(summarize({samples.begin(), samples.end()}).median)};
}

LinkMeasurement measure_until(const StoppingRule& rule, LinkTest test, Duration target,
                              engine::Ranks& ranks, const LinkSettings& settings,
                              engine::Checks& checks) {
  LinkMeasurement all = measure_link(test, target, ranks, settings, checks);
  const auto times = [&] {
    return std::vector<double>{all.samples_ns.begin(), all.samples_ns.end()};
  };
  const int pairs = ranks.count() / 2;
  int done = settings.samples * pairs;
  while (goes_on(rule, done, times(), ranks.world())) {
    LinkSettings round_of = settings;
    round_of.samples = std::min(settings.samples, (rule.most - done) / pairs);
    if (round_of.samples < 1) break;  // less than a sample of every pair is left
    const LinkMeasurement round = measure_link(test, target, ranks, round_of, checks);
    all.least_mean = std::min(all.least_mean, round.least_mean);
    all.samples_ns.insert(all.samples_ns.end(), round.samples_ns.begin(), round.samples_ns.end());
    done += round_of.samples * pairs;
  }
  if (!all.samples_ns.empty()) all.error_percent = summarize(errors_percent(all));
  return all;
}

std::vector<LinkMeasurement> measure_targets(const StoppingRule& rule,
                                             const std::vector<Duration>& targets,
                                             engine::Ranks& ranks, const LinkSettings& settings,
                                             engine::Checks& checks,
                                             const std::function<void()>& after_each) {
  std::vector<LinkMeasurement> all;
  Progress progress{"bench_link", 2 * std::ssize(targets)};
  for (const LinkTest test : every<LinkTest>()) {
    for (const Duration target : targets) {
      all.push_back(measure_until(rule, test, target, ranks, settings, checks));
      after_each();
      if (ranks.is_first()) progress.update(std::ssize(all), to_text(target));
    }
  }
  return all;
}

void require_pairs(const engine::Ranks& ranks) {
  if (ranks.count() < 2 || ranks.count() % 2 != 0)
    fail("bench_link runs on pairs of ranks, not on {}. Start it with scripts/mpi -n 2 ...",
         ranks.count());
}

bool is_too_fast(const LinkMeasurement& m) {
  return static_cast<double>(m.least_mean.count()) < 0.98 * static_cast<double>(m.target.count());
}

std::vector<Duration> parse_targets(const std::string& list) {
  std::vector<Duration> targets;
  std::stringstream in{list};
  for (std::string item; std::getline(in, item, ',');) {
    targets.push_back(value_of("--targets", [&] { return parse_duration(item); }));
    if (targets.back() <= Duration::zero())
      fail("target {} is not positive (there is no error relative to it). Give 0.5ms, 1ms, ...",
           item);
  }
  if (targets.empty()) fail("no targets given. Write --targets 1ms,10ms.");
  return targets;
}

}  // namespace longhaul::harness
