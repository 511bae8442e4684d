#include "schedule/placement.hpp"

#include <array>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace longhaul {
namespace {

constexpr std::array kPlacements{Placement::unidirectional, Placement::loop, Placement::wave,
                                 Placement::bidirectional};

}  // namespace

const char* name_of(Placement placement) {
  switch (placement) {
    case Placement::unidirectional: return "ud";
    case Placement::loop: return "loop";
    case Placement::wave: return "wave";
    case Placement::bidirectional: return "bd";
  }
  return "?";
}

Placement parse_placement(std::string_view text) {
  std::vector<std::string> known;
  for (const Placement placement : kPlacements) {
    if (text == name_of(placement)) return placement;
    known.emplace_back(name_of(placement));
  }
  fail("There is no placement \"{}\". {}", text, suggestion(text, known));
}

}  // namespace longhaul
