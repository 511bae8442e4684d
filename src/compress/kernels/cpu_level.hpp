#pragma once

#include "base/listed_enum.hpp"

// A function that is compiled for a level above the machine's least. A caller has asked
// cpu_level().
#if defined(__x86_64__)
#define LONGHAUL_TARGET_AVX2 __attribute__((target("avx2")))
#define LONGHAUL_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define LONGHAUL_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define LONGHAUL_TARGET_AVX2
#define LONGHAUL_TARGET_AVX512
#define LONGHAUL_ALWAYS_INLINE inline __attribute__((always_inline))
#endif

namespace longhaul::compress {

/// Vector instructions, each with those before it.
#define LONGHAUL_CPU_LEVELS(X) X(plain, "plain") X(avx2, "avx2") X(avx512, "avx512")
LONGHAUL_LISTED_ENUM(CpuLevel, LONGHAUL_CPU_LEVELS);

/// The most that this machine has and that we have code for.
[[nodiscard]] CpuLevel best_cpu_level();

/// What kernels use: the machine's best, or less where LONGHAUL_CPU_LEVEL or a test says so.
/// Results are equal bits at every level.
[[nodiscard]] CpuLevel cpu_level();

/// For tests and benchmarks: at most this level while it lives. One thread alone.
class LimitedCpuLevel {
public:
  explicit LimitedCpuLevel(CpuLevel most);
  ~LimitedCpuLevel();
  LimitedCpuLevel(const LimitedCpuLevel&) = delete;
  LimitedCpuLevel& operator=(const LimitedCpuLevel&) = delete;

private:
  CpuLevel before_;
};

}  // namespace longhaul::compress
