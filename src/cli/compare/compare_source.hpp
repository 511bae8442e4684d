#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace longhaul {

/// Times of one schedule (or of one target of bench_link) in one run, in ns as played.
struct NamedSample {
  std::string name;
  std::vector<double> times_ns;
  std::string trouble;  ///< why they may mean something else: wrong messages; empty: nothing known
};

/// One side of a comparison.
struct ComparedRun {
  std::string source;       ///< as typed
  bool is_measured = true;  ///< otherwise simulated: one time each, without noise
  double time_scale = 1;
  std::string scenario;  ///< its text, or its name where the record has no more
  /// Other conditions that the times depend on, by name: comm, emulate, payload, hosts, commit
  /// ...; those that the source knows.
  std::vector<std::pair<std::string, std::string>> conditions;
  /// Of the last minute, when the run ended; its own ranks count.
  std::optional<double> load_average;
  std::vector<NamedSample> samples;
};

/// Reads a run's directory, a record (.json; of bench_pipeline, bench_link or `longhaul simulate
/// --json`) or a trace. A trace with measured iterations is a measured run, another one a simulated
/// one. Throws Error.
[[nodiscard]] ComparedRun read_compared(const std::string& source);

}  // namespace longhaul
