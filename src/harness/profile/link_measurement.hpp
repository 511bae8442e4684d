#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/listed_enum.hpp"
#include "engine/credit/shadow_time.hpp"
#include "engine/options.hpp"
#include "engine/ranks.hpp"
#include "harness/options/stopping.hpp"
#include "harness/ranks/device_and_transport.hpp"
#include "trace/report/report.hpp"

namespace longhaul::harness {

/// CrossPipe appendix F.2: ping-pong for latency, messages back to back for bandwidth.
#define LONGHAUL_LINK_TESTS(X) X(latency, "latency") X(bandwidth, "bandwidth")
LONGHAUL_LISTED_ENUM(LinkTest, LONGHAUL_LINK_TESTS);

/// "0.5ms,1ms": delays to emulate. Throws Error where one is not positive.
[[nodiscard]] std::vector<Duration> parse_targets(const std::string& list);

/// Throws Error unless the ranks form pairs.
void require_pairs(const engine::Ranks& ranks);

struct LinkSettings {
  int samples = 20;                               ///< of each pair of ranks
  Bytes size;                                     ///< nominal, of a message
  Bytes payload;                                  ///< really sent
  DeviceKind device = DeviceKind::cpu;            ///< what has the payloads, and plays the delays
  Duration credit{std::chrono::milliseconds{1}};  ///< EngineOptions::credit
  Duration baseline{};                     ///< of a message without injected delay: not in samples
  std::optional<Duration> clock_offset{};  ///< EngineOptions::clock_offset
};

struct LinkMeasurement {
  LinkTest test{};
  Duration target{};
  std::vector<std::int64_t> samples_ns;  ///< of all pairs of ranks; complete on rank 0
  SampleSummary error_percent;           ///< against the target
  /// Least mean time of a message over the pairs of ranks: from the first send's start to the last
  /// message's end, by message (latency: with nothing taken off). A late look makes a sample short,
  /// and never this.
  Duration least_mean = kNoMean;
  engine::CreditUse credit{};  ///< of all ranks; complete on rank 0
  static constexpr Duration kNoMean = Duration::max();
};

/// Collective: ranks k and k + ranks/2 are a pair each, all at the same time. A sample is half a
/// round trip, or the time from one message to the next.
[[nodiscard]] LinkMeasurement measure_link(LinkTest test, Duration target, engine::Ranks& ranks,
                                           const LinkSettings& settings, engine::Checks& checks);

/// Collective: round by round, until the median of the samples is known as well as asked.
[[nodiscard]] LinkMeasurement measure_until(const StoppingRule& rule, LinkTest test,
                                            Duration target, engine::Ranks& ranks,
                                            const LinkSettings& settings, engine::Checks& checks);

/// Collective: both tests at every target. `after_each` is called on every rank.
[[nodiscard]] std::vector<LinkMeasurement> measure_targets(
    const StoppingRule& rule, const std::vector<Duration>& targets, engine::Ranks& ranks,
    const LinkSettings& settings, engine::Checks& checks, const std::function<void()>& after_each);

/// A link cannot be faster than its target, all messages of a run together.
[[nodiscard]] bool is_too_fast(const LinkMeasurement& measurement);

/// Collective: the median of half a round trip into which nothing is injected, on rank 0. F.2 holds
/// delays of GPUs against it, whose messages take longer than those of the host.
[[nodiscard]] Duration measure_baseline(engine::Ranks& ranks, const LinkSettings& settings,
                                        engine::Checks& checks);

/// Error of one sample against its target, in percent.
[[nodiscard]] double error_percent(std::int64_t sample_ns, Duration target);
/// Errors of all samples against their targets, in percent.
[[nodiscard]] std::vector<double> errors_percent(const LinkMeasurement& measurement);

/// Settings of a run of bench_link.
struct LinkRun {
  std::string command_line;
  LinkSettings settings;
  StoppingRule rule;
};

[[nodiscard]] nlohmann::ordered_json link_record(const LinkRun& run,
                                                 const std::vector<LinkMeasurement>& measurements,
                                                 const nlohmann::json& environment,
                                                 const engine::Checks& checks);
/// A line for each measurement, for people, and what was sent of each message.
[[nodiscard]] std::string link_table(const std::vector<LinkMeasurement>& measurements,
                                     const LinkSettings& settings);
/// A line for each sample.
[[nodiscard]] std::string link_csv(const std::vector<LinkMeasurement>& measurements);

}  // namespace longhaul::harness
