#pragma once

namespace longhaul {

/// e^x for |x| <= 700 and log(x) for x > 0 (neither zero, denormal nor infinite), to about 1e-15.
/// The standard library's may differ in the last bit from one machine to the next. These use
/// additions, multiplications, divisions and powers of two alone, which IEEE 754 leaves no choice,
/// and are compiled without fused multiply-add (src/CMakeLists.txt): equal bits everywhere.
[[nodiscard]] double exponential(double x);
[[nodiscard]] double logarithm(double x);

}  // namespace longhaul
