#include "profile/parameters.hpp"

namespace longhaul::profile {
namespace {

#define LONGHAUL_PARAMETER_FACTS(enumerator, name, value, low, high, spread, unit, meaning) \
  ParameterFacts{value, low, high, spread, unit, meaning},
constexpr std::array kFacts{LONGHAUL_PROFILE_PARAMETERS(LONGHAUL_PARAMETER_FACTS)};
#undef LONGHAUL_PARAMETER_FACTS

}  // namespace

const ParameterFacts& facts_of(Parameter parameter) {
  return kFacts[static_cast<std::size_t>(parameter)];
}

ParameterValues::ParameterValues() : values_{} {
  for (const Parameter parameter : every<Parameter>())
    (*this)[parameter] = facts_of(parameter).value;
}

}  // namespace longhaul::profile
