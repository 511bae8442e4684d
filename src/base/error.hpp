#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace longhaul {

/// Exit codes of every binary.
enum class ExitCode : int { fine = 0, answer_is_no = 1, bad_input = 2, run_failed = 3 };

/// Something outside the program is wrong: a file, a flag, a device, a peer. The text reads
/// "what (why). What to do.", preceded by file:line:column for configuration text.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string& what, ExitCode code = ExitCode::bad_input)
      : std::runtime_error{what}, code_{code} {}
  [[nodiscard]] ExitCode code() const { return code_; }

private:
  ExitCode code_;
};

/// Throws Error with a formatted text: fail("stage {} is placed twice", stage).
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error{fmt::format(format, std::forward<Args>(args)...)};
}

/// Prints the text with its place and aborts: something inside the program is wrong.
[[noreturn]] void assertion_failed(const char* condition, const std::string& values,
                                   std::source_location where);

}  // namespace longhaul

/// Checks an invariant of ours in every build type; the further arguments are a format string and
/// the values to print.
#define LONGHAUL_ASSERT(condition, ...)                                    \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::longhaul::assertion_failed(#condition, ::fmt::format(__VA_ARGS__), \
                                   std::source_location::current());       \
  } while (false)
