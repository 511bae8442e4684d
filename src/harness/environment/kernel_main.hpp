#pragma once

#include <functional>
#include <string_view>

namespace longhaul::bench {

/// Runs the benchmarks registered with Google Benchmark; its context names the host and the build
/// (the same facts as in the records of other benchmarks). Returns the exit code. With --check
/// alone it measures nothing and runs `check`, which compares the kernels' results with known ones.
[[nodiscard]] int run_kernels(int argc, char** argv, const std::function<void()>& check);

/// For `check`: throws Error (the answer is no) unless `holds`.
void expect(bool holds, std::string_view what);

}  // namespace longhaul::bench
