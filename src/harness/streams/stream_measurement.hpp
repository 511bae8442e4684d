#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "plan/plan.hpp"

namespace longhaul::harness {

/// A stream to measure: replicas in two sites, half of them in each, of three parts with F and B.
/// After its B each part is exchanged with the replica's partner in the other site, over a link of
/// each direction that all share and that serves by deadline: part 0 first. F of a part waits for
/// its exchange `1 + stale` iterations before.
struct StreamSettings {
  Duration forward{std::chrono::milliseconds{10}};
  Duration latency{std::chrono::milliseconds{5}};
  Bytes size{25'000'000};  ///< of each exchange, one way
  int iterations = 20;
  int warmup = 5;  ///< of these iterations: not measured
  Duration credit{std::chrono::milliseconds{1}};
  std::optional<engine::Fault> fault;
};

struct StreamMeasurement {
  Bandwidth rate;
  int stale = 0;
  Duration predicted{};  ///< between the starts of two iterations, mean
  Duration measured{};   ///< the same, of the slowest rank
  std::size_t live = 0;  ///< iterations in memory at a time
  [[nodiscard]] double difference() const {
    return static_cast<double>(measured.count()) / static_cast<double>(predicted.count()) - 1;
  }
};

[[nodiscard]] Plan plan_of_exchange(int ranks, Bandwidth rate, int stale,
                                    const StreamSettings& settings);
/// Collective over an even number of ranks.
[[nodiscard]] StreamMeasurement measure_stream(Bandwidth rate, int stale, engine::Ranks& ranks,
                                               const StreamSettings& settings,
                                               engine::Checks& checks);
/// What an op costs that is told to ranks of the same host, without waking them.
struct PublishingCost {
  double publish_ns = 0, read_ns = 0;  ///< of the first rank; of the slowest of the others
};
/// Collective.
[[nodiscard]] PublishingCost measure_publishing(engine::Ranks& ranks);

/// "40Gbps,10Gbps". Throws Error where that is no list of rates.
[[nodiscard]] std::vector<Bandwidth> parse_rates(const std::string& list);
[[nodiscard]] std::string stream_table(const std::vector<StreamMeasurement>& measurements);

}  // namespace longhaul::harness
