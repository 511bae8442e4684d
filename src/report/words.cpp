#include "report/words.hpp"

#include <fmt/format.h>

namespace longhaul::report {

std::string counted(std::int64_t count, std::string_view noun) {
  const char* const ending = count == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", count, noun, ending);
}

}  // namespace longhaul::report
