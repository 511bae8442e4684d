#pragma once

#include <functional>
#include <string_view>

namespace longhaul::bench {

/// Runs what is registered with Google Benchmark; its context says where, and what was built (the
/// same facts as in the records of other benchmarks). Returns the exit code. With --check alone it
/// measures nothing and runs `check`: what the kernels make, held against what is known of it.
[[nodiscard]] int run_kernels(int argc, char** argv, const std::function<void()>& check);

/// For `check`: throws Error (the answer is no) unless `holds`.
void expect(bool holds, std::string_view what);

}  // namespace longhaul::bench
