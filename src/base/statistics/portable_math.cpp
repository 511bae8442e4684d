#include "base/statistics/portable_math.hpp"

#include <cmath>

namespace longhaul {
namespace {

// log(2) in two pieces. The first has so few digits that its product with an exponent is exact.
constexpr double kLog2High = 0x1.62e42feep-1;
constexpr double kLog2Low = 0x1.a39ef35793c76p-33;

}  // namespace

// e^x = 2^k e^r with |r| <= log(2)/2, where Taylor's series is short.
double exponential(double x) {
  constexpr int kTerms = 14;
  const double k = std::floor(x / (kLog2High + kLog2Low) + 0.5);
  const double r = (x - k * kLog2High) - k * kLog2Low;
  double sum = 1;
  for (int n = kTerms; n > 0; --n) sum = 1 + r / n * sum;
  return std::ldexp(sum, static_cast<int>(k));
}

// x = 2^k m with m from sqrt(1/2) to sqrt(2), and log(m) = 2 (s + s^3/3 + s^5/5 + ...) with
// s = (m - 1)/(m + 1), at most 0.172.
double logarithm(double x) {
  int k = 0;
  double m = std::frexp(x, &k);
  if (m < 0x1.6a09e667f3bcdp-1) {  // sqrt(1/2)
    m *= 2;
    --k;
  }
  constexpr int kPowers = 21;
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int n = kPowers; n > 0; n -= 2) sum = 1.0 / n + square * sum;
  return k * kLog2High + (2 * s * sum + k * kLog2Low);
}

}  // namespace longhaul
