#include "schedule/placement.hpp"

#include "base/error.hpp"
#include "base/suggest.hpp"

namespace longhaul::schedule {
Placement parse_placement(std::string_view text) {
  if (const auto placement = from_string<Placement>(text)) return *placement;
  fail("There is no placement \"{}\". {}", text, suggestion(text, every_name<Placement>()));
}

}  // namespace longhaul::schedule
