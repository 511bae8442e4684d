#include <iostream>
#include <string>
#include <vector>

#include "cli/longhaul.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return longhaul::cli::run_longhaul(arguments, std::cout, std::cerr);
}
