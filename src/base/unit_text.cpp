#include "base/unit_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

/// Spellings of others, in small letters.
constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kOtherNames{
    {{"sec", "s"},           {"secs", "s"},         {"second", "s"},        {"seconds", "s"},
     {"msec", "ms"},         {"millisecond", "ms"}, {"milliseconds", "ms"}, {"usec", "us"},
     {"microseconds", "us"}, {"\xC2\xB5s", "us"},   {"nsec", "ns"},         {"minute", "min"},
     {"minutes", "min"},     {"hour", "h"},         {"hours", "h"},         {"hr", "h"},
     {"bit/s", "bps"},       {"kbit/s", "kbps"},    {"mbit/s", "Mbps"},     {"gbit/s", "Gbps"},
     {"tbit/s", "Tbps"},     {"kbit", "kbps"},      {"mbit", "Mbps"},       {"gbit", "Gbps"},
     {"byte", "B"},          {"bytes", "B"},        {"gbits/s", "Gbps"}}};

std::string in_small_letters(std::string_view word) {
  std::string small{word};
  for (char& c : small)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return small;
}

/// "Did you mean Gbps? " for "Gbit/s" and "gbps"; empty where no unit, or more than one, is meant.
std::string unit_meant(std::string_view unit, std::span<const Unit> units) {
  const std::string small = in_small_letters(unit);
  std::vector<std::string_view> meant;
  for (const Unit& known : units)
    if (in_small_letters(known.name) == small) meant.push_back(known.name);
  for (const auto& [other, name] : kOtherNames)
    if (other == small && std::ranges::find(units, name, &Unit::name) != units.end())
      meant.push_back(name);
  return meant.size() == 1 ? fmt::format("Did you mean {}? ", meant.front()) : std::string{};
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
  fail("\"{}\" is no {} (unknown unit \"{}\"). {}Use one of {}.", text, what, unit,
       unit_meant(unit, units), names_of(units));
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
