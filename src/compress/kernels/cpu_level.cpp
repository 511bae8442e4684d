#include "compress/kernels/cpu_level.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/program/option_values.hpp"

namespace longhaul::compress {
namespace {

CpuLevel detected_level() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return CpuLevel::avx512;
  if (__builtin_cpu_supports("avx2")) return CpuLevel::avx2;
#endif
  return CpuLevel::plain;
}

CpuLevel level_at_start() {
  const char* const asked = std::getenv("LONGHAUL_CPU_LEVEL");
  if (asked == nullptr || *asked == '\0') return best_cpu_level();
  return std::min(best_cpu_level(), choice<CpuLevel>("LONGHAUL_CPU_LEVEL", asked));
}

std::atomic<CpuLevel>& level_in_use() {
  static std::atomic<CpuLevel> level{level_at_start()};
  return level;
}

}  // namespace

CpuLevel best_cpu_level() {
  static const CpuLevel kLevel = detected_level();
  return kLevel;
}

CpuLevel cpu_level() { return level_in_use().load(std::memory_order_relaxed); }

LimitedCpuLevel::LimitedCpuLevel(CpuLevel most) : before_{cpu_level()} {
  level_in_use() = std::min(best_cpu_level(), most);
}

LimitedCpuLevel::~LimitedCpuLevel() { level_in_use() = before_; }

}  // namespace longhaul::compress
