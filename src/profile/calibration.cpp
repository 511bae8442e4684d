#include "profile/calibration.hpp"

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "profile/machine.hpp"
#include "scenario/text/fields.hpp"

namespace longhaul::profile {
namespace {

using scenario::Section;

MachineCalibration read_machine_calibration(const scenario::ConfigNode& table,
                                            const std::string& name) {
  std::vector<std::string> known{"low", "high", "parameters"};
  const Section section{table, name, known};
  MachineCalibration machine;
  machine.values = machine_named(name).parameters;
  machine.low = scenario::read_number(section.require("low", "intervals need it"), 1e-3, 1);
  machine.high = scenario::read_number(section.require("high", "intervals need it"), 1, 1e3);
  std::vector<std::string> names;
  for (const Parameter parameter : every<Parameter>()) names.emplace_back(to_string(parameter));
  const scenario::Field field = section.require("parameters", "they are what was fitted");
  if (field.node->kind != scenario::ConfigNode::Kind::table)
    scenario::fail_at(field.node->place, "{} is no table. Write its parameters below it.",
                      field.path);
  const Section parameters{*field.node, name + ".parameters", names};
  for (const Parameter parameter : every<Parameter>()) {
    const auto value = parameters.find(to_string(parameter));
    if (!value) continue;
    const ParameterFacts& facts = facts_of(parameter);
    machine.values[parameter] = scenario::read_number(*value, facts.low, facts.high);
    machine.fitted[static_cast<std::size_t>(parameter)] = true;
  }
  return machine;
}

}  // namespace

Calibration read_calibration(std::string_view text, const std::string& source) {
  const scenario::ConfigNode root =
      scenario::parse_toml(text, std::make_shared<const std::string>(source));
  Calibration calibration;
  for (const scenario::ConfigEntry& entry : root.entries) {
    if (entry.value.kind != scenario::ConfigNode::Kind::table)
      scenario::fail_at(entry.place, "\"{}\" is no table of a machine. Take it out.",
                        scenario::shown(entry.key));
    calibration.emplace(entry.key, read_machine_calibration(entry.value, entry.key));
  }
  return calibration;
}

std::string to_text(const Calibration& calibration) {
  std::string text = "# Written by `longhaul profile fit`.\n";
  for (const auto& [name, machine] : calibration) {
    text += fmt::format("\n[{}]\nlow = {:.4f}\nhigh = {:.4f}\n\n[{}.parameters]\n", name,
                        machine.low, machine.high, name);
    for (const Parameter parameter : every<Parameter>()) {
      if (!machine.is_fitted(parameter)) continue;
      const ParameterFacts& facts = facts_of(parameter);
      text += fmt::format("{} = {:.6g}  # {}\n", to_string(parameter), machine.values[parameter],
                          facts.unit);
    }
  }
  return text;
}

}  // namespace longhaul::profile
