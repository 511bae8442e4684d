#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace longhaul::testing {

/// The nearest directory at or above `from` that is a checkout; empty where none is.
inline std::filesystem::path checkout_above(const std::filesystem::path& from) {
  for (std::filesystem::path each = from; !each.empty(); each = each.parent_path()) {
    if (std::filesystem::is_regular_file(each / "CMakePresets.json")) return each;
    if (each == each.parent_path()) break;
  }
  return {};
}

/// The checkout that the test was started in, as ctest does, or else that its program lies in. No
/// path is compiled in: a compiler's cache then knows a test's file from another checkout.
inline const std::filesystem::path& checkout() {
  static const std::filesystem::path found = [] {
    std::filesystem::path above = checkout_above(std::filesystem::current_path());
    std::error_code none;
    if (above.empty())
      above = checkout_above(std::filesystem::read_symlink("/proc/self/exe", none));
    if (above.empty())
      throw std::runtime_error{"no checkout above this directory. Start it in one."};
    return above;
  }();
  return found;
}

/// in_checkout("docs/scenario.md"): where that file is.
inline std::string in_checkout(std::string_view path) { return (checkout() / path).string(); }

/// The scenarios of benchmarks/scenarios.
inline const std::filesystem::path kShippedScenarios = checkout() / "benchmarks" / "scenarios";

}  // namespace longhaul::testing
