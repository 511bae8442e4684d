#include "base/index.hpp"

#include "base/error.hpp"

namespace longhaul {

void index_failed(std::int64_t number, std::size_t size) {
  LONGHAUL_ASSERT(false, "index {} into a table of {}", number, size);
}

}  // namespace longhaul
