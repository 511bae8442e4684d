#pragma once

#include <optional>
#include <span>
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

/// One run of a side of a comparison.
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

/// The runs of A and of B.
struct Sides {
  std::vector<std::string> a, b;  ///< sources; neither is empty
};
/// "A B", "A1,A2 B1,B2" or "A1,A2:B1,B2", as `words`. A word that names a file or directory that is
/// there is one run, whatever is in its name. Throws Error where a side is missing or a name empty.
[[nodiscard]] Sides sides_of(std::span<const std::string> words);

/// B against A.
#define LONGHAUL_VERDICTS(X) \
  X(faster, "faster") X(slower, "slower") X(not_distinguishable, "not distinguishable")
LONGHAUL_LISTED_ENUM(Verdict, LONGHAUL_VERDICTS);

/// One schedule in all runs of a side.
struct SideSample {
  std::string name;
  SampleSummary iterations;              ///< of all runs together
  std::vector<double> run_medians_ns{};  ///< of each run, in the order of the runs
};

/// One schedule of A against one of B.
struct Comparison {
  SideSample a, b;
  Ratio ratio;  ///< of B's times to A's
  Verdict verdict = Verdict::not_distinguishable;
  std::string reason;  ///< where it is not what the numbers suggest; else empty

  /// Does the interval know of the spread between runs?
  [[nodiscard]] bool is_of_runs() const {
    return a.run_medians_ns.size() + b.run_medians_ns.size() > 2;
  }
};

/// Two measured samples, one for each run of a side: faster or slower by more than `at_least`
/// (0.01: 1%) where the whole 95% interval of the ratio says so (docs/metrics.md). Of one run a
/// side that is the interval of their iterations, and the medians must agree; of several that of
/// runs. Simulated times have no noise: any difference beyond `at_least` counts.
[[nodiscard]] Comparison compare(std::span<const NamedSample> a, std::span<const NamedSample> b,
                                 bool is_measured, double at_least = 0);

/// One condition that is not the same in two runs.
struct Difference {
  std::string what, a, b;
};
/// Throws Error where times of A and B do not mean the same: measured and simulated, other
/// time_scale. Everything else that differs and that both know.
[[nodiscard]] std::vector<Difference> differences_of(const ComparedRun& a, const ComparedRun& b);

/// "1%" is 0.01; empty: 0. Throws Error unless it is a percentage from 0 to below 100.
[[nodiscard]] double at_least_of(const std::string& text);

/// Does a verdict meet --expect? Throws Error on an unknown word.
[[nodiscard]] bool holds(const std::string& expected, Verdict verdict);

}  // namespace longhaul::cli
