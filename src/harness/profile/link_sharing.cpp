#include "harness/profile/link_sharing.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "engine/engine.hpp"
#include "harness/profile/plan_builder.hpp"

namespace longhaul::harness {
namespace {

/// A ring of all ranks, each step of `target`: member i sends what it got in the step before.
void add_ring(PlanBuilder& builder, int ranks, Duration target, Bytes size) {
  std::vector<PlanBuilder::Handle> got(static_cast<std::size_t>(ranks));
  for (int step = 0; step < ranks - 1; ++step) {
    std::vector<PlanBuilder::Handle> next = got;
    for (int from = 0; from < ranks; ++from) {
      const int to = (from + 1) % ranks;
      const auto message = builder.message(from, to, target, Duration::zero(), size,
                                           {fmt::format("ring {}>{}", from, to)});
      if (step > 0) builder.after(message.send, got[static_cast<std::size_t>(from)]);
      next[static_cast<std::size_t>(to)] = message.recv;
    }
    got = next;
  }
}

struct Ends {
  Duration begin = Duration::max(), end = Duration::min();
};

/// On rank 0 the time from the first start of an op to the last end, by its clock.
double time_of(const engine::Ranks& ranks, const Plan& plan, const OpTimes& times,
               Duration clock_offset) {
  Ends mine;
  const OpRange range = ops_of_rank(plan, ranks.self());
  for (std::uint32_t i = range.first; i < range.first + range.count; ++i) {
    mine.begin = std::min(mine.begin, times[i].start + clock_offset);
    mine.end = std::max(mine.end, times[i].end + clock_offset);
  }
  std::vector<int> counts;
  const auto bytes = ranks.world().gather(std::as_bytes(std::span{&mine, std::size_t{1}}), counts);
  std::vector<Ends> all(bytes.size() / sizeof(Ends));
  if (!bytes.empty()) std::memcpy(all.data(), bytes.data(), bytes.size());
  Ends whole;
  for (const Ends& each : all) {
    whole.begin = std::min(whole.begin, each.begin);
    whole.end = std::max(whole.end, each.end);
  }
  return all.empty() ? 0 : static_cast<double>((whole.end - whole.begin).count());
}

SharingMeasurement measure(SharingTest test, Duration target, engine::Ranks& ranks,
                           const LinkSettings& settings, engine::Checks& checks) {
  const SharingPlan made = sharing_plan(test, target, ranks.count(), settings.size);
  SharingMeasurement measured{test, target, made.expected, {}};
  engine::EngineOptions options;
  options.payload = settings.payload;
  options.clock_offset = settings.clock_offset;
  const auto device = make_timed_device(settings.device, ranks, options.credit);
  const auto data_plane = make_data_plane(settings.device, ranks, made.plan, options);
  ranks.watchdog().watch(&made.plan, 2 * made.expected);
  engine::Engine engine{made.plan, ranks, *device, *data_plane, options};
  for (int iteration = -1; iteration < settings.samples; ++iteration) {
    const engine::IterationResult result = engine.run(iteration);
    checks += result.checks;
    const double time =
        time_of(ranks, made.plan, result.times, settings.clock_offset.value_or(Duration::zero()));
    if (iteration >= 0 && ranks.is_first()) measured.samples_ns.push_back(time);
  }
  ranks.watchdog().watch(nullptr, {});
  return measured;
}

}  // namespace

SharingPlan sharing_plan(SharingTest test, Duration target, int ranks, Bytes size) {
  PlanBuilder builder{fmt::format("{} {}", to_string(test), to_text(target)), ranks};
  const int pairs = ranks / 2;
  const auto send = [&](int from, int to, std::vector<std::string> resources = {}) {
    builder.message(from, to, target, Duration::zero(), size, std::move(resources));
  };
  Duration expected = target;
  switch (test) {
    case SharingTest::isolated: send(0, pairs); break;
    case SharingTest::one_link:
      for (int a = 0; a < pairs; ++a) send(a, a + pairs, {"wan"});
      expected = pairs * target;
      break;
    case SharingTest::both_ways:
      for (int a = 0; a < pairs; ++a) {
        send(a, a + pairs);
        send(a + pairs, a);
      }
      break;
    case SharingTest::beside_ring:
      add_ring(builder, ranks, target, size);
      // Two or three ranks send it over a lane of the ring, and so over its link.
      send(0, pairs, {pairs == 1 ? "ring 0>1" : "beside"});
      expected = (pairs == 1 ? ranks : ranks - 1) * target;
      break;
  }
  return {builder.build(), expected};
}

std::vector<SharingMeasurement> measure_sharing(const std::vector<Duration>& targets,
                                                engine::Ranks& ranks, const LinkSettings& settings,
                                                engine::Checks& checks) {
  std::vector<SharingMeasurement> all;
  // Stamps of hosts are compared where their offsets are known; a GPU's messages take what its
  // baseline says.
  const bool one_clock = ranks.host_ranks().all_local() || settings.clock_offset;
  if (!one_clock || settings.device != DeviceKind::cpu) return all;
  for (const SharingTest test : every<SharingTest>())
    for (const Duration target : targets)
      all.push_back(measure(test, target, ranks, settings, checks));
  return all;
}

std::string sharing_table(const std::vector<SharingMeasurement>& measured, Duration floor,
                          const LinkSettings& settings) {
  std::string text = fmt::format(
      "\nfloor {}: half a round trip of {} with nothing injected; no target below it can be "
      "emulated\n",
      to_text(floor), to_text(std::min(settings.payload, settings.size)));
  if (measured.empty()) return text;
  Table table{{{"together", Align::left},
               {"target"},
               {"n"},
               {"expected"},
               {"median"},
               {"p95"},
               {"median error %"}}};
  for (const SharingMeasurement& each : measured) {
    const SampleSummary summary = summarize(each.samples_ns);
    const auto expected = static_cast<double>(each.expected.count());
    const auto time = [](double ns) { return to_text(Duration{std::llround(ns)}); };
    table.add_row({to_string(each.test), to_text(each.target), std::to_string(summary.n),
                   to_text(each.expected), time(summary.median), time(summary.p95),
                   fmt::format("{:+.2f}", 100 * (summary.median / expected - 1))});
  }
  return text + "\n" + table.text();
}

nlohmann::ordered_json sharing_json(const std::vector<SharingMeasurement>& measured) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const SharingMeasurement& each : measured)
    all.push_back({{"test", to_string(each.test)},
                   {"target_ns", each.target.count()},
                   {"expected_ns", each.expected.count()},
                   {"n", each.samples_ns.size()},
                   {"median_ns", summarize(each.samples_ns).median},
                   {"samples_ns", each.samples_ns}});
  return all;
}

}  // namespace longhaul::harness
