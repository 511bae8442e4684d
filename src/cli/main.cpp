#include <iostream>
#include <string>
#include <vector>

#include "base/program/program.hpp"
#include "cli/longhaul.hpp"

int main(int argc, char** argv) {
  longhaul::keep_freed_memory();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return longhaul::cli::run_longhaul(arguments, std::cout, std::cerr);
}
