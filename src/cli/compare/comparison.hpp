#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/listed_enum.hpp"
#include "base/statistics/sample.hpp"

namespace longhaul::cli {

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
  /// The load of the last minute when the run ended; its own ranks count.
  std::optional<double> load_average;
  std::vector<NamedSample> samples;
};

/// Reads a run's directory, a record (.json; of bench_pipeline, bench_link or `longhaul simulate
/// --json`) or a trace. A trace with measured iterations is a measured run, another one a simulated
/// one. Throws Error.
[[nodiscard]] ComparedRun read_compared(const std::string& source);

/// B against A.
#define LONGHAUL_VERDICTS(X) \
  X(faster, "faster") X(slower, "slower") X(not_distinguishable, "not distinguishable")
LONGHAUL_LISTED_ENUM(Verdict, LONGHAUL_VERDICTS);

/// One schedule of A against one of B.
struct Comparison {
  std::string a_name, b_name;
  SampleSummary a, b;
  Ratio ratio;  ///< of B's times to A's
  Verdict verdict = Verdict::not_distinguishable;
  std::string reason;  ///< where it is not what the numbers suggest; else empty
};

/// Two measured samples: faster or slower where the 95% interval of the ratio leaves 1 out and the
/// medians say the same (docs/metrics.md). Simulated times have no noise: any difference counts.
[[nodiscard]] Comparison compare(const NamedSample& a, const NamedSample& b, bool is_measured);

/// One condition that is not the same on both sides.
struct Difference {
  std::string what, a, b;
};
/// Throws Error where times of A and B do not mean the same: measured and simulated, other
/// time_scale. Everything else that differs and that both know.
[[nodiscard]] std::vector<Difference> differences_of(const ComparedRun& a, const ComparedRun& b);

/// Does a verdict meet --expect? Throws Error on an unknown word.
[[nodiscard]] bool holds(const std::string& expected, Verdict verdict);

}  // namespace longhaul::cli
