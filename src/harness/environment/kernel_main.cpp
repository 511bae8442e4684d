#include "harness/environment/kernel_main.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "base/error.hpp"
#include "harness/environment/facts.hpp"

namespace longhaul::harness {
namespace {

void add_context(const std::string& prefix, const nlohmann::json& facts) {
  for (const auto& [key, value] : facts.items())
    benchmark::AddCustomContext(prefix + key,
                                value.is_string() ? value.get<std::string>() : value.dump());
}

int run_check(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(error.code());
  }
  fmt::print("check: ok\n");
  return 0;
}

}  // namespace

void expect(bool holds, std::string_view what) {
  if (!holds)
    throw Error{fmt::format("{} does not hold (the kernel is wrong). Run the tests.", what),
                ExitCode::answer_is_no};
}

/// Above that of Google Benchmark.
void print_own_help(const std::string& program) {
  fmt::print(
      "{0}: a kernel's time, by Google Benchmark.\n"
      "  --check   alone: measure nothing, compare results with known ones\n"
      "For example:\n  {0} --check\n  {0} --benchmark_min_time=0.1\n"
      "Exit codes: 0 fine, 1 a check failed, 2 bad input.\n",
      program);
  std::fflush(stdout);
}

int run_kernels(int argc, char** argv, const std::function<void()>& check) {
  if (argc == 2 && std::string_view{argv[1]} == "--check") return run_check(check);
  if (argc == 2 && std::string_view{argv[1]} == "--help") print_own_help(argv[0]);
  add_context("host_", whole_host_facts());
  add_context("program_", program_facts(command_line(argc, argv)));
  benchmark::AddCustomContext("slurm", job_facts(environment_variables()).dump());
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return static_cast<int>(ExitCode::bad_input);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

int size_of(const benchmark::State& state, std::size_t position) {
  return static_cast<int>(state.range(position));
}

benchmark::Counter rate(std::int64_t count) {
  return {static_cast<double>(count), benchmark::Counter::kIsRate};
}

double least_cpu_seconds(const std::function<void()>& work) {
  double least = HUGE_VAL;
  for (int i = 0; i < 3; ++i) {
    const std::clock_t begin = std::clock();
    work();
    least = std::min(least, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return least;
}

double growth_exponent(const std::vector<double>& sizes, const std::vector<double>& seconds) {
  const auto n = static_cast<double>(sizes.size());
  double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double x = std::log(sizes[i]);
    const double y = std::log(seconds[i]);
    sum_x += x;
    sum_y += y;
    sum_xx += x * x;
    sum_xy += x * y;
  }
  return (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
}

double peak_memory_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

}  // namespace longhaul::harness
