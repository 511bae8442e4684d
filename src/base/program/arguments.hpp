#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"

namespace longhaul {

/// A command line that does not fit. The text has no full stop: the caller adds where help is.
class ArgumentError : public Error {
public:
  using Error::Error;
};

/// An option, flag or positional that was declared, to say more of it:
/// `arguments.option("--samples", samples, "of each target").within(1, 100).shows_default();`
class Argument {
public:
  struct Declared;
  explicit Argument(Declared& declared) : declared_{&declared} {}

  Argument& required();
  /// The help names the value that the variable has now.
  Argument& shows_default();
  /// The value is a number from `least` to `most`, both included.
  Argument& within(int least, int most);
  Argument& within(std::int64_t least, std::int64_t most);
  Argument& within(double least, double most);
  Argument& one_of(const std::vector<std::string>& words);
  /// Of a list: takes one value after each of its names.
  Argument& one_value_each();
  /// Of a list: takes so many values.
  Argument& values(int least, int most);
  /// Of a flag: `--json=false` is refused.
  Argument& takes_no_value();
  /// Heading in the help; empty: the help leaves it out.
  Argument& group(const std::string& name);
  /// It is refused without the other one, or together with it.
  Argument& needs(const Argument& other);
  Argument& excludes(const Argument& other);

private:
  Declared* declared_;
};

/// The options of a program, and its commands. Every variable that is handed in
/// lives longer than the parser. Knows --help from the start. The only place that sees CLI11.
///
///     Arguments arguments{"Measures a link."};
///     arguments.option("--samples", samples, "of each target").within(1, 100);
///     arguments.flag("--json", json, "print the record instead of a table");
///     if (const auto text = arguments.parse(argc, argv)) fmt::print("{}", *text);
class Arguments {
public:
  explicit Arguments(const std::string& description);
  ~Arguments();
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  /// A name without dashes is a positional. `value` is a number, a text, a path, an optional number
  /// or a list of texts.
  template <typename Value>
  Argument option(const std::string& names, Value& value, const std::string& description = {}) {
    return add(names, &value, description);
  }
  Argument flag(const std::string& names, bool& value, const std::string& description = {});
  /// A command below this one, which stays the owner. At most one is taken.
  Arguments& command(const std::string& name, const std::string& description);

  /// Instead of the first word of the command line.
  void program(const std::string& name);
  /// Adds --version.
  void version(const std::string& text);
  /// Below the help.
  void footer(const std::string& text);
  /// Words that are not known are no error, but left().
  void keeps_unknown();

  /// The text to be printed where that was asked for (--help, --version), with a line end. Throws
  /// ArgumentError.
  [[nodiscard]] std::optional<std::string> parse(int argc, const char* const* argv);
  /// Without the program's name.
  [[nodiscard]] std::optional<std::string> parse(std::span<const std::string> words);

  [[nodiscard]] std::string name() const;
  [[nodiscard]] const Arguments* parent() const;
  /// Commands below this one.
  [[nodiscard]] std::vector<std::string> commands() const;
  /// The command below this one that has the name.
  [[nodiscard]] Arguments& at(const std::string& name);
  /// "--json", "--out": all with two dashes.
  [[nodiscard]] std::vector<std::string> options() const;
  /// Those that take no value, and those that may be given several times.
  [[nodiscard]] std::vector<std::string> flags() const;
  [[nodiscard]] std::vector<std::string> repeatable() const;
  /// After parse(): the command below this one that was named; null: none.
  [[nodiscard]] const Arguments* chosen() const;
  /// After parse(): words that nothing took.
  [[nodiscard]] std::vector<std::string> left() const;

private:
  using Target =
      std::variant<std::string*, int*, std::int64_t*, std::uint64_t*, double*, std::optional<int>*,
                   std::filesystem::path*, std::vector<std::string>*>;
  struct State;
  explicit Arguments(std::unique_ptr<State> state);
  [[nodiscard]] std::vector<std::string> options_taking(int least, int most) const;
  Argument add(const std::string& names, Target target, const std::string& description);

  std::unique_ptr<State> state_;
};

/// Reads a number as an option of a command line does; nothing where the text is none.
[[nodiscard]] std::optional<int> read_int(const std::string& text);
[[nodiscard]] std::optional<double> read_double(const std::string& text);

}  // namespace longhaul
