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

/// Which of the values between two others are a method's, too.
enum class KnobValues { all, whole, powers_of_two };

/// A number in a method's name, and what stands around it.
struct Knob {
  std::string before, after;
  double value = 0;
  KnobValues values = KnobValues::all;
};

/// Of a key, empty of a bare number. None of others: they choose among kinds, as "bits" does, or
/// change how parts are exchanged.
std::optional<KnobValues> values_of(std::string_view key) {
  constexpr std::string_view kShares[] = {"keep",  "activations_keep", "outer", "momentum", "decay",
                                          "mixing"};
  constexpr std::string_view kCounts[] = {"", "steps", "rank", "warmup", "ramp"};
  if (key == "block") return KnobValues::powers_of_two;
  if (std::ranges::find(kShares, key) != std::end(kShares)) return KnobValues::all;
  if (std::ranges::find(kCounts, key) != std::end(kCounts)) return KnobValues::whole;
  return std::nullopt;
}

/// "keep=0.1" is 0.1 after "keep=", "keep=1%" is 1 between that and "%"; nullopt: the word has no
/// positive number whose neighbours are methods.
std::optional<Knob> knob_in(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::size_t begin = equals == std::string::npos ? 0 : equals + 1;
  const auto values = values_of(std::string_view{word}.substr(0, begin == 0 ? 0 : equals));
  if (!values) return std::nullopt;
  Knob knob{word.substr(0, begin), "", 0, *values};
  const char* const end = word.data() + word.size();
  const auto [stopped, problem] = std::from_chars(word.data() + begin, end, knob.value);
  if (problem != std::errc{} || !(knob.value > 0) || !std::isfinite(knob.value))
    return std::nullopt;
  knob.after.assign(stopped, end);
  if (!knob.after.empty() && (knob.after != "%" || knob.values != KnobValues::all))
    return std::nullopt;
  return knob;
}

std::vector<Knob> knobs_of(const std::string& method) {
  std::vector<Knob> knobs;
  const std::vector<std::string> words = words_of(method, ':');
  std::string before = words.empty() ? std::string{} : words.front();
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (auto knob = knob_in(words[i])) {
      knob->before = before + ':' + knob->before;
      knob->after += method.substr(before.size() + 1 + words[i].size());
      knobs.push_back(*std::move(knob));
    }
    before += ':' + words[i];
  }
  return knobs;
}

/// The nearest value of a method.
double nearest(KnobValues values, double value) {
  switch (values) {
    case KnobValues::powers_of_two: return std::exp2(std::round(std::log2(value)));
    case KnobValues::whole: return std::round(value);
    case KnobValues::all: break;
  }
  return value;
}

/// The member of that value of the knob.
FamilyMember composed(const FamilyMember& lower, const FamilyMember& upper, const Knob& knob,
                      double least, double most, double value) {
  const double share = std::log(value / least) / std::log(most / least);
  FamilyMember member = lower;
  member.method = fmt::format("{}{:g}{}", knob.before, value, knob.after);
  member.curves.clear();
  for (auto bytes : {&FamilyMember::wan_bytes, &FamilyMember::early_wan_bytes}) {
    member.*bytes = lower.*bytes + share * (upper.*bytes - lower.*bytes);
    if (lower.*bytes > 0 && upper.*bytes > 0)
      member.*bytes = lower.*bytes * std::pow(upper.*bytes / lower.*bytes, share);
  }
  member.early_exchanges +=
      static_cast<int>(std::lround(share * (upper.early_exchanges - lower.early_exchanges)));
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
  using Family =
      std::tuple<std::string, std::string, KnobValues, SetExchange, Serve, int, int, int, bool>;
  std::map<Family, std::map<double, const FamilyMember*>> families;
  for (const FamilyMember& member : members) {
    if (member.between) continue;
    for (const Knob& knob : knobs_of(member.method))
      families[{knob.before, knob.after, knob.values, member.exchange, member.serve,
                member.staleness, member.fragments, member.overlap, member.has_host_tasks}]
          .try_emplace(knob.value, &member);
  }
  std::vector<FamilyMember> found;
  for (const auto& [family, by_value] : families) {
    if (by_value.size() < 2) continue;
    const Knob knob{std::get<0>(family), std::get<1>(family), 0, std::get<2>(family)};
    for (auto upper = std::next(by_value.begin()); upper != by_value.end(); ++upper) {
      const auto lower = std::prev(upper);
      const double least = lower->first, most = upper->first;
      if (!explains_local_steps(*lower->second, least, *upper->second, most)) continue;
      double last = least;
      for (int i = 1; i <= kMostBetween; ++i) {
        const double value =
            nearest(knob.values, least * std::pow(most / least, i / (kMostBetween + 1.0)));
        if (value <= last || value >= most) continue;
        last = value;
        found.push_back(composed(*lower->second, *upper->second, knob, least, most, value));
      }
    }
  }
  return found;
}

}  // namespace longhaul::planner
