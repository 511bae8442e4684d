#include "base/listed_enum.hpp"

#include "base/error.hpp"

namespace longhaul {

void fail_unlisted(std::size_t value, std::size_t count) {
  LONGHAUL_ASSERT(value < count, "enumerator {} of {}", value, count);
  std::abort();
}

}  // namespace longhaul
