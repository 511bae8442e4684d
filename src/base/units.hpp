#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace longhaul {

/// Model and trace time. Integer nanoseconds, so that two runs with one seed agree bit for bit.
using Duration = std::chrono::nanoseconds;

using namespace std::chrono_literals;

/// A size. Signed, so that a difference (memory released) is a size too.
class Bytes {
public:
  constexpr Bytes() = default;
  constexpr explicit Bytes(std::int64_t count) : count_{count} {}
  [[nodiscard]] constexpr std::int64_t count() const { return count_; }

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes other) { return count_ += other.count_, *this; }
  constexpr Bytes& operator-=(Bytes other) { return count_ -= other.count_, *this; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return a -= b; }
  friend constexpr Bytes operator-(Bytes a) { return Bytes{-a.count_}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return Bytes{a.count_ * n}; }
  friend constexpr Bytes operator/(Bytes a, std::int64_t n) { return Bytes{a.count_ / n}; }

private:
  std::int64_t count_ = 0;
};

/// A rate, in bits per second. Kept as a real number: times are rounded, rates are not
/// (`transfer_ratio` gives rates that are no whole number of bits). Unlimited by default.
class Bandwidth {
public:
  constexpr Bandwidth() = default;
  constexpr explicit Bandwidth(double bits_per_second) : bits_per_second_{bits_per_second} {}
  [[nodiscard]] static constexpr Bandwidth unlimited() { return {}; }
  [[nodiscard]] constexpr double bits_per_second() const { return bits_per_second_; }
  [[nodiscard]] constexpr bool is_unlimited() const {
    return bits_per_second_ == std::numeric_limits<double>::infinity();
  }
  constexpr auto operator<=>(const Bandwidth&) const = default;

private:
  double bits_per_second_ = std::numeric_limits<double>::infinity();
};

/// Time on the wire alone, to the nearest nanosecond: no latency, no software overhead.
[[nodiscard]] constexpr Duration operator/(Bytes size, Bandwidth rate) {
  const double nanoseconds = static_cast<double>(size.count()) * 8e9 / rate.bits_per_second();
  return Duration{static_cast<std::int64_t>(nanoseconds + 0.5)};
}

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes{static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n << 10)};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n << 20)};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes{static_cast<std::int64_t>(n << 30)};
}
constexpr Bandwidth operator""_Mbps(unsigned long long n) {
  return Bandwidth{static_cast<double>(n) * 1e6};
}
constexpr Bandwidth operator""_Gbps(unsigned long long n) {
  return Bandwidth{static_cast<double>(n) * 1e9};
}
}  // namespace literals

static_assert(1_MiB / 1_Gbps == Duration{8'388'608});
static_assert(1_MiB / Bandwidth::unlimited() == Duration::zero());

/// `time` times `factor`, to the nearest nanosecond (halves away from zero).
[[nodiscard]] inline Duration scaled(Duration time, double factor) {
  return Duration{std::llround(static_cast<double>(time.count()) * factor)};
}

/// `whole` at `position` of `length`: exact where both are equal, else to the nearest nanosecond.
/// Ends of operators that are cut so add up to the block.
[[nodiscard]] inline Duration portion(Duration whole, Duration position, Duration length) {
  if (whole == length) return position;
  if (length == Duration::zero()) return whole;
  __extension__ using Wide = __int128;
  const Wide half = length.count() / 2;
  return Duration{static_cast<std::int64_t>(
      (static_cast<Wide>(whole.count()) * position.count() + half) / length.count())};
}

}  // namespace longhaul
