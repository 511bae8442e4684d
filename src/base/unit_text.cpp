#include "base/unit_text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <span>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 6> kTimeUnits{
    {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 6e10}, {"h", 3.6e12}}};
constexpr std::array<Unit, 9> kSizeUnits{{{"B", 1},
                                          {"KiB", 0x1p10},
                                          {"MiB", 0x1p20},
                                          {"GiB", 0x1p30},
                                          {"TiB", 0x1p40},
                                          {"kB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12}}};
constexpr std::array<Unit, 13> kRateUnits{{{"bps", 1},
                                           {"kbps", 1e3},
                                           {"Mbps", 1e6},
                                           {"Gbps", 1e9},
                                           {"Tbps", 1e12},
                                           {"B/s", 8},
                                           {"kB/s", 8e3},
                                           {"MB/s", 8e6},
                                           {"GB/s", 8e9},
                                           {"TB/s", 8e12},
                                           {"KiB/s", 0x1p13},
                                           {"MiB/s", 0x1p23},
                                           {"GiB/s", 0x1p33}}};

std::string names_of(std::span<const Unit> units) {
  std::string names;
  for (const Unit& unit : units) names += (names.empty() ? "" : ", ") + std::string{unit.name};
  return names;
}

double parse(std::string_view text, std::string_view what, std::span<const Unit> units) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || !std::isfinite(number))
    fail("\"{}\" is no {} (it does not start with a number). Write a number and one of {}.", text,
         what, names_of(units));
  std::string_view unit = text.substr(to_size(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : units) {
    if (known.name == unit) return number * known.factor;
  }
  if (unit.empty())
    fail("\"{}\" is no {} (it has no unit). Add one of {}.", text, what, names_of(units));
  fail("\"{}\" is no {} (unknown unit \"{}\"). Use one of {}.", text, what, unit, names_of(units));
}

/// Rounded to the nearest integer; refuses what an int64 cannot hold.
std::int64_t rounded(double value, std::string_view text) {
  if (std::fabs(value) >= 9.2e18)
    fail("\"{}\" is too large (9.2e18 is the limit). Use a smaller value.", text);
  return std::llround(value);
}

std::string with_largest_unit(double value, std::span<const Unit> units) {
  const Unit* best = &units.front();
  for (const Unit& unit : units) {
    if (std::fabs(value) >= unit.factor && unit.factor > best->factor) best = &unit;
  }
  return fmt::format("{:.4g} {}", value / best->factor, best->name);
}

}  // namespace

Duration parse_duration(std::string_view text) {
  return Duration{rounded(parse(text, "duration", kTimeUnits), text)};
}

Bytes parse_bytes(std::string_view text) {
  return Bytes{rounded(parse(text, "size", kSizeUnits), text)};
}

Bandwidth parse_bandwidth(std::string_view text) {
  return Bandwidth{parse(text, "rate", kRateUnits)};
}

std::string to_text(Duration time) {
  return with_largest_unit(static_cast<double>(time.count()),
                           std::span{kTimeUnits}.first(4));  // no minutes: seconds compare
}

std::string to_text(Bytes size) {
  return with_largest_unit(static_cast<double>(size.count()), std::span{kSizeUnits}.first(5));
}

std::string to_text(Bandwidth rate) {
  if (rate.is_unlimited()) return "unlimited";
  return with_largest_unit(rate.bits_per_second(), std::span{kRateUnits}.first(5));
}

}  // namespace longhaul
