#include "planner/tune/family_between.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/program/option_values.hpp"

namespace longhaul::planner {
namespace {

/// Members between two neighbours.
constexpr int kMostBetween = 3;

/// A number in a method's name, and what stands around it.
struct Knob {
  std::string before, after;
  double value = 0;
};

/// "keep=0.1" is 0.1 after "keep="; nullopt: the word ends in no positive number.
std::optional<std::pair<std::string, double>> number_of(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::size_t begin = equals == std::string::npos ? 0 : equals + 1;
  double value = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, problem] = std::from_chars(word.data() + begin, end, value);
  if (problem != std::errc{} || stopped != end || !(value > 0) || !std::isfinite(value))
    return std::nullopt;
  return std::pair{word.substr(0, begin), value};
}

std::vector<Knob> knobs_of(const std::string& method) {
  std::vector<Knob> knobs;
  const std::vector<std::string> words = words_of(method, ':');
  std::string before = words.empty() ? std::string{} : words.front();
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (const auto number = number_of(words[i]))
      knobs.push_back({before + ':' + number->first,
                       method.substr(before.size() + 1 + words[i].size()), number->second});
    before += ':' + words[i];
  }
  return knobs;
}

bool is_whole(double value) { return value == std::round(value); }

/// The member of that value of the knob.
FamilyMember composed(const FamilyMember& lower, const FamilyMember& upper, const Knob& knob,
                      double least, double most, double value) {
  const double share = std::log(value / least) / std::log(most / least);
  FamilyMember member = lower;
  member.method = fmt::format("{}{:g}{}", knob.before, value, knob.after);
  member.curves.clear();
  member.wan_bytes = lower.wan_bytes + share * (upper.wan_bytes - lower.wan_bytes);
  if (lower.wan_bytes > 0 && upper.wan_bytes > 0)
    member.wan_bytes = lower.wan_bytes * std::pow(upper.wan_bytes / lower.wan_bytes, share);
  if (lower.local_steps != upper.local_steps) member.local_steps = static_cast<int>(value);
  member.between = std::make_shared<const FamilyBetween>(FamilyBetween{lower, upper, share});
  return member;
}

/// Of local steps a name's number is theirs, or they are equal.
bool explains_local_steps(const FamilyMember& lower, double least, const FamilyMember& upper,
                          double most) {
  return lower.local_steps == upper.local_steps ||
         (lower.local_steps == least && upper.local_steps == most);
}

}  // namespace

std::vector<FamilyMember> members_between(const std::vector<FamilyMember>& members) {
  using Family = std::tuple<std::string, std::string, SetExchange, Serve, int>;
  std::map<Family, std::map<double, const FamilyMember*>> families;
  for (const FamilyMember& member : members) {
    if (member.between) continue;
    for (const Knob& knob : knobs_of(member.method))
      families[{knob.before, knob.after, member.exchange, member.serve, member.staleness}]
          .try_emplace(knob.value, &member);
  }
  std::vector<FamilyMember> found;
  for (const auto& [family, by_value] : families) {
    if (by_value.size() < 2) continue;
    const Knob knob{std::get<0>(family), std::get<1>(family), 0};
    for (auto upper = std::next(by_value.begin()); upper != by_value.end(); ++upper) {
      const auto lower = std::prev(upper);
      const double least = lower->first, most = upper->first;
      if (!explains_local_steps(*lower->second, least, *upper->second, most)) continue;
      double last = least;
      for (int i = 1; i <= kMostBetween; ++i) {
        double value = least * std::pow(most / least, i / (kMostBetween + 1.0));
        if (is_whole(least) && is_whole(most)) value = std::round(value);
        if (value <= last || value >= most) continue;
        last = value;
        found.push_back(composed(*lower->second, *upper->second, knob, least, most, value));
      }
    }
  }
  return found;
}

}  // namespace longhaul::planner
