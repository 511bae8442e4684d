#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace longhaul::harness {

/// Runs the benchmarks registered with Google Benchmark; its context names the host and the build
/// (the same facts as in the records of other benchmarks). Returns the exit code. With --check
/// alone it measures nothing and runs `check`, which compares the kernels' results with known ones.
[[nodiscard]] int run_kernels(int argc, char** argv, const std::function<void()>& check);

/// For `check`: throws Error (the answer is no) unless `holds`.
void expect(bool holds, std::string_view what);

/// Registers a benchmark: `kernel`(state, args...).
template <typename Kernel, typename... Args>
benchmark::internal::Benchmark* add_kernel(const std::string& name, Kernel&& kernel,
                                           Args&&... args) {
  return benchmark::RegisterBenchmark(name.c_str(), std::forward<Kernel>(kernel),
                                      std::forward<Args>(args)...);
}

/// Argument `position` of a benchmark, as registered.
[[nodiscard]] int size_of(const benchmark::State& state, std::size_t position);

/// `count` of all iterations together, as a counter per second of CPU time.
[[nodiscard]] benchmark::Counter rate(std::int64_t count);

/// CPU seconds of the fastest of three runs of `work`.
[[nodiscard]] double least_cpu_seconds(const std::function<void()>& work);

/// The power of the size with which the time grows: slope of log(seconds) over log(size) by least
/// squares. Precondition: as many sizes as times, at least two different ones.
[[nodiscard]] double growth_exponent(const std::vector<double>& sizes,
                                     const std::vector<double>& seconds);

/// Largest memory of this process so far, MiB.
[[nodiscard]] double peak_memory_mib();

}  // namespace longhaul::harness
