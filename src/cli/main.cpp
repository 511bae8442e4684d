#include <iostream>
#include <string>
#include <vector>

#include <malloc.h>

#include "cli/longhaul.hpp"

namespace {

/// Memory that was given back is used again and not asked of the system anew, at a fault a page.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargest = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kLargest);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return longhaul::cli::run_longhaul(arguments, std::cout, std::cerr);
}
