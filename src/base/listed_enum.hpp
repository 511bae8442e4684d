#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace longhaul {

/// Ends the program: `value` is no enumerator of an enumeration of `count`.
[[noreturn]] void fail_unlisted(std::size_t value, std::size_t count);

namespace listed {

/// The name of an enumerator: the first entry of its line after the enumerator itself.
template <typename... Facts>
[[nodiscard]] constexpr const char* name(const char* first, const Facts&...) {
  return first;
}

/// The number that files hold for it, where the list states one: the entry after its name.
template <typename... Facts>
[[nodiscard]] constexpr std::uint8_t number(const char*, std::uint8_t number, const Facts&...) {
  return number;
}

struct Numbered {
  std::uint8_t number;
  const char* name;
};

/// Names by number. Not a constant where a number is left out or stands twice.
template <std::size_t Count>
[[nodiscard]] constexpr std::array<const char*, Count> by_number(const Numbered (&lines)[Count]) {
  std::array<const char*, Count> names{};
  for (const Numbered& line : lines) {
    if (names.at(line.number) != nullptr) throw "a number stands twice";
    names.at(line.number) = line.name;
  }
  return names;
}

template <std::size_t Count>
[[nodiscard]] inline const char* name_at(const std::array<const char*, Count>& names,
                                         std::size_t value) {
  if (value >= Count) [[unlikely]]
    fail_unlisted(value, Count);
  return names[value];
}

}  // namespace listed

/// An enumeration that LONGHAUL_LISTED_ENUM declared.
template <typename Enum>
concept ListedEnum = requires(Enum value) {
  listed_names(value);
};

/// The number of enumerators; their values are 0 to this number - 1.
template <ListedEnum Enum>
inline constexpr int kCountOf = static_cast<int>(listed_names(Enum{}).size());

/// False for a number out of a file that is none of the enumerators.
template <ListedEnum Enum>
[[nodiscard]] constexpr bool is_listed(Enum value) {
  return static_cast<std::size_t>(value) < listed_names(Enum{}).size();
}

/// All enumerators, ascending.
template <ListedEnum Enum>
[[nodiscard]] constexpr auto every() {
  std::array<Enum, listed_names(Enum{}).size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}

/// The enumerator of that name; none: there is none.
template <ListedEnum Enum>
[[nodiscard]] constexpr std::optional<Enum> from_string(std::string_view name) {
  for (const Enum value : every<Enum>())
    if (name == listed_names(Enum{})[static_cast<std::size_t>(value)]) return value;
  return std::nullopt;
}

/// All names, in the order of the enumerators: for messages that list the choices.
template <ListedEnum Enum>
[[nodiscard]] std::vector<std::string> every_name() {
  const auto names = listed_names(Enum{});
  return {names.begin(), names.end()};
}

}  // namespace longhaul

// An enumeration and its names from one list, a macro of lines X(enumerator, "name", more facts):
//
//   #define LONGHAUL_COLOURS(X) X(red, "red") X(dark_blue, "dark-blue")
//   LONGHAUL_LISTED_ENUM(Colour, LONGHAUL_COLOURS);
//
// declares `enum class Colour`, to_string(Colour), and what kCountOf, every, from_string and
// names_of need. Use it at the scope of a namespace. LONGHAUL_NUMBERED_ENUM does the same for an
// enumeration whose values lie in files: its lines are X(enumerator, "name", number, more facts),
// and a line keeps its number wherever it stands.
#define LONGHAUL_LISTED_ENUMERATOR(enumerator, ...) enumerator,
#define LONGHAUL_LISTED_NAME(enumerator, ...) ::longhaul::listed::name(__VA_ARGS__),
#define LONGHAUL_LISTED_ENUM(Enum, LIST)                               \
  enum class Enum : std::uint8_t { LIST(LONGHAUL_LISTED_ENUMERATOR) }; \
  [[nodiscard]] constexpr auto listed_names(Enum) {                    \
    return std::to_array<const char*>({LIST(LONGHAUL_LISTED_NAME)});   \
  }                                                                    \
  LONGHAUL_LISTED_TO_STRING(Enum)

#define LONGHAUL_NUMBERED_ENUMERATOR(enumerator, ...) \
  enumerator = ::longhaul::listed::number(__VA_ARGS__),
#define LONGHAUL_NUMBERED_LINE(enumerator, ...) \
  {::longhaul::listed::number(__VA_ARGS__), ::longhaul::listed::name(__VA_ARGS__)},
#define LONGHAUL_NUMBERED_ENUM(Enum, LIST)                                \
  enum class Enum : std::uint8_t { LIST(LONGHAUL_NUMBERED_ENUMERATOR) };  \
  [[nodiscard]] constexpr auto listed_names(Enum) {                       \
    return ::longhaul::listed::by_number({LIST(LONGHAUL_NUMBERED_LINE)}); \
  }                                                                       \
  LONGHAUL_LISTED_TO_STRING(Enum)

#define LONGHAUL_LISTED_TO_STRING(Enum)                                          \
  [[nodiscard]] inline const char* to_string(Enum value) {                       \
    static constexpr auto kNames = listed_names(Enum{});                         \
    return ::longhaul::listed::name_at(kNames, static_cast<std::size_t>(value)); \
  }                                                                              \
  static_assert(listed_names(Enum{}).size() <= 256)
