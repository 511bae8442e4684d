#include "base/error.hpp"

#include <cstdio>
#include <cstdlib>

#include "base/index.hpp"
#include "base/listed_enum.hpp"
#include "base/version.hpp"

namespace longhaul {

void assertion_failed(const char* condition, const std::string& values,
                      std::source_location where) {
  fmt::print(stderr, "longhaul: internal error at {} in {}: {} is false: {}\n", source_place(where),
             where.function_name(), condition, values);
  std::abort();
}

void index_failed(std::int64_t number, std::size_t size) {
  LONGHAUL_ASSERT(false, "index {} into a table of {}", number, size);
}

void fail_unlisted(std::size_t value, std::size_t count) {
  LONGHAUL_ASSERT(value < count, "enumerator {} of {}", value, count);
  std::abort();
}

}  // namespace longhaul
