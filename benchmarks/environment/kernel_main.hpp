#pragma once

namespace longhaul::bench {

/// Runs what is registered with Google Benchmark; its context says where, and what was built (the
/// same facts as in the records of other benchmarks). Returns the exit code.
[[nodiscard]] int run_kernels(int argc, char** argv);

}  // namespace longhaul::bench
