// A stranger's program: nothing of Longhaul but its header.
#include <iostream>

#include <longhaul.hpp>

int main(int argc, char** argv) {
  using namespace longhaul::api;
  try {
    const Scenario scenario = Scenario::load(argc > 1 ? argv[1] : "");
    const Schedule schedule = make_schedule("zb-h1", scenario);
    if (const auto why = why_invalid(schedule, scenario)) {
      std::cerr << *why << '\n';
      return 1;
    }
    std::cout << "C++: zb-h1 takes " << simulate(schedule, scenario).makespan_ns << " ns\n";
    static_cast<void>(make_schedule("no-such", scenario));
  } catch (const Error& error) {
    std::cout << "C++: " << error.what() << '\n';
    return 0;
  }
  return 1;
}
