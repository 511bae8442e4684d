#include "base/program/program.hpp"

namespace longhaul {

int run_program(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {  // the system's: no memory, no directory
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(ExitCode::run_failed);
  }
}

std::optional<ExitCode> read_arguments(Arguments& arguments, int argc, char** argv) {
  try {
    const std::optional<std::string> text = arguments.parse(argc, argv);
    if (!text) return std::nullopt;
    fmt::print("{}", *text);
    return ExitCode::fine;
  } catch (const ArgumentError& error) {
    fmt::print(stderr, "{}\nRun with --help for more information.\n", error.what());
    return ExitCode::bad_input;
  }
}

}  // namespace longhaul
