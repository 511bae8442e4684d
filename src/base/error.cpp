#include "base/error.hpp"

#include <cstdio>
#include <cstdlib>

namespace longhaul {

void assertion_failed(const char* condition, const std::string& values,
                      std::source_location where) {
  fmt::print(stderr, "longhaul: internal error at {}:{} in {}: {} is false: {}\n",
             where.file_name(), where.line(), where.function_name(), condition, values);
  std::abort();
}

}  // namespace longhaul
