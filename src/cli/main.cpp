#include <iostream>
#include <string>
#include <vector>

#include "cli/longhaul.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return longhaul::run_longhaul(arguments, std::cout, std::cerr);
}
