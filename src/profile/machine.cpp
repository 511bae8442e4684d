#include "profile/machine.hpp"

#include <map>
#include <memory>
#include <mutex>

#include "base/suggest.hpp"
#include "profile/machine_files.hpp"
#include "scenario/text/fields.hpp"

namespace longhaul::profile {
namespace {

using scenario::ConfigNode;
using scenario::Field;
using scenario::Section;

constexpr double kBitsOfBytePerNs = 8e9;

double bytes_per_ns(const Field& field) {
  const Bandwidth rate = scenario::read_bandwidth(field);
  if (rate.is_unlimited())
    scenario::fail_at(field.node->place, "{} is unlimited (nothing is). Give a rate.", field.path);
  return rate.bits_per_second() / kBitsOfBytePerNs;
}

ConfigNode parsed(std::string_view text, const std::string& source) {
  return scenario::parse_toml(text, std::make_shared<const std::string>(source));
}

MatmulLaw read_law(const Section& section, const std::string& source) {
  const Field law = section.require("matmul_law", "it gives products between measured ones");
  const std::vector<Field> values = scenario::elements(law);
  if (values.size() != 5)
    scenario::fail_at(law.node->place,
                      "matmul_law has {} values. Give launch_ns, flops_per_ns and three pads.",
                      values.size());
  const auto number = [&](std::size_t i, double low) {
    return scenario::read_number(values[i], low, 1e9);
  };
  const MatmulLaw::Constants constants{number(0, 0), number(1, 1e-6), number(2, 0), number(3, 0),
                                       number(4, 0)};
  const auto table = section.find("matmul");
  return {constants, table ? read_matmul_table(scenario::read_text(*table), source + ": matmul")
                           : std::vector<MatmulLaw::Measured>{}};
}

Gpu read_gpu(const std::string& name, const Field& place) {
  for (const MachineFile& file : gpu_files()) {
    if (file.name != name) continue;
    const std::string source = fmt::format("{}.toml of the program", name);
    const ConfigNode root = parsed(file.text, source);
    const Section section{root,
                          "",
                          {"peak", "device", "collective_share", "matmul_law", "matmul",
                           "all_reduce", "all_reduce_faster"}};
    Gpu gpu;
    gpu.name = name;
    gpu.flops_per_ns =
        scenario::read_flops(section.require("peak", "rates are shares of it")) / 1e9;
    gpu.link_bytes_per_ns = bytes_per_ns(section.require("device", "messages in a node take it"));
    gpu.collective_share = scenario::read_number(
        section.require("collective_share", "collectives slow what computes beside them"), 0, 0.9);
    gpu.matmul = read_law(section, source);
    const auto faster = section.find("all_reduce_faster");
    gpu.all_reduce = AllReduceTable{
        read_all_reduce_table(
            scenario::read_text(section.require("all_reduce", "groups in a node need it")),
            source + ": all_reduce"),
        faster ? scenario::read_number(*faster, 1e-3, 1e3) : 1};
    return gpu;
  }
  std::vector<std::string> known;
  for (const MachineFile& file : gpu_files()) known.emplace_back(file.name);
  scenario::fail_at(place.node->place, "no profile of a GPU \"{}\". {}", scenario::shown(name),
                    suggestion(name, known));
}

ParameterValues read_parameters(const ConfigNode& root) {
  ParameterValues values;
  const ConfigNode* const table = root.find("parameters");
  if (table == nullptr) return values;
  std::vector<std::string> known;
  for (const Parameter parameter : every<Parameter>()) known.emplace_back(to_string(parameter));
  const Section section{*table, "parameters", known};
  for (const Parameter parameter : every<Parameter>())
    if (const auto field = section.find(to_string(parameter)))
      values[parameter] =
          scenario::read_number(*field, facts_of(parameter).low, facts_of(parameter).high);
  return values;
}

}  // namespace

Machine read_machine(std::string_view text, const std::string& source) {
  const ConfigNode root = parsed(text, source);
  const Section section{root,
                        "",
                        {"name", "source", "gpu", "gpus_per_node", "memory", "memory_bandwidth",
                         "node_bandwidth", "parameters"}};
  Machine machine;
  machine.name = scenario::read_text(section.require("name", "rows name their machine"));
  machine.source = scenario::read_text(section.require("source", "numbers need one"));
  const Field gpu = section.require("gpu", "operators run on it");
  machine.gpu = read_gpu(scenario::read_text(gpu), gpu);
  machine.gpus_per_node = static_cast<int>(scenario::read_integer(
      section.require("gpus_per_node", "groups inside a node are faster"), 1, 4096));
  machine.memory = scenario::read_bytes(section.require("memory", "plans must fit it"));
  machine.memory_bytes_per_ns =
      bytes_per_ns(section.require("memory_bandwidth", "most operators take it"));
  machine.node_bytes_per_ns =
      bytes_per_ns(section.require("node_bandwidth", "groups of several nodes take it"));
  machine.parameters = read_parameters(root);
  return machine;
}

std::span<const std::string> machine_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const MachineFile& file : machine_files()) all.emplace_back(file.name);
    return all;
  }();
  return names;
}

const Machine& machine_named(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const Machine>, std::less<>> made;
  const std::scoped_lock lock{mutex};
  if (const auto found = made.find(name); found != made.end()) return *found->second;
  for (const MachineFile& file : machine_files()) {
    if (file.name != name) continue;
    auto machine = std::make_unique<const Machine>(
        read_machine(file.text, fmt::format("{}.toml of the program", name)));
    return *made.emplace(std::string{name}, std::move(machine)).first->second;
  }
  fail("unknown machine \"{}\". {}", scenario::shown(name), suggestion(name, machine_names()));
}

}  // namespace longhaul::profile
