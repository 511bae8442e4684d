#include "report/collective_options.hpp"

#include <algorithm>

#include "base/index.hpp"
#include "base/program/arguments.hpp"
#include "base/program/option_values.hpp"
#include "base/unit_text.hpp"
#include "planner/collectives/collective_times.hpp"

namespace longhaul::report {
namespace {

using plan::CollectiveAlgorithm;

constexpr int kMostPieces = 1'000'000;
constexpr int kLargestDimension = 1'000'000;

/// By the names for people, "all-reduce", and those in traces, "all_reduce".
CollectiveKind kind_of(const std::string& word) {
  if (word.empty()) fail("--kind: none is given. Name one, as in --kind all-reduce.");
  std::string in_trace = word;
  std::ranges::replace(in_trace, '-', '_');
  if (const auto kind = from_string<CollectiveKind>(in_trace)) return *kind;
  std::vector<std::string> known;
  for (const CollectiveKind kind : every<CollectiveKind>()) known.emplace_back(to_text(kind));
  fail("--kind: there is no \"{}\". {}", word, suggestion(word, known));
}

Bytes bytes_of(const std::string& text) {
  if (text.empty()) fail("--bytes: no size is given. Give the whole vector's, as in 64MiB.");
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  try {
    return parse_bytes(plain ? text + "B" : text);
  } catch (const Error& error) {
    fail("--bytes: {}", error.what());
  }
}

/// "0-15", "0,3,5", "0-3,8-11"; nothing: all ranks.
std::vector<Rank> group_of(const std::string& text, const Scenario& scenario) {
  std::vector<Rank> members;
  const int last = scenario.ranks() - 1;
  if (text.empty()) {
    for (int rank = 0; rank <= last; ++rank) members.push_back(Rank{rank});
    return members;
  }
  for (const std::string& part : words_of(text, ',')) {
    const std::vector<std::string> ends = words_of(part, '-');
    if (ends.size() > 2) fail("--group: \"{}\" is no range. Write 0-15, or 0,3,5.", part);
    const int first = whole_number("--group", ends.front(), 0, last);
    const int end = whole_number("--group", ends.back(), 0, last);
    if (end < first) fail("--group: {} ends before it begins. Write {}-{}.", part, end, first);
    for (int rank = first; rank <= end; ++rank) members.push_back(Rank{rank});
  }
  return members;
}

std::vector<int> numbers_of(const char* option, const std::string& text, char separator, int least,
                            int most) {
  std::vector<int> numbers;
  for (const std::string& word : words_of(text, separator))
    numbers.push_back(whole_number(option, word, least, most));
  return numbers;
}

/// The mesh as typed; where it is not, that of the scenario's levels.
plan::Mesh mesh_of(const CollectiveArguments& arguments, const plan::Collective& collective,
                   const Scenario& scenario) {
  plan::Mesh mesh;
  mesh.sizes = arguments.mesh.empty()
                   ? planner::mesh_of_levels(collective.members, scenario).or_throw()
                   : numbers_of("--mesh", arguments.mesh, 'x', 1, kLargestDimension);
  mesh.order = arguments.order.empty()
                   ? planner::usual_order(collective.kind, mesh.dimensions())
                   : numbers_of("--order", arguments.order, ',', 0, kLargestDimension);
  if (arguments.per_dimension.empty()) {
    mesh.algorithms.assign(mesh.sizes.size(), CollectiveAlgorithm::ring);
    return mesh;
  }
  for (const std::string& word : words_of(arguments.per_dimension, ','))
    mesh.algorithms.push_back(choice<CollectiveAlgorithm>("--per-dimension", word));
  return mesh;
}

/// Options of a mesh beside an algorithm that has none would have no effect.
void refuse_mesh(const CollectiveArguments& arguments, const std::string& algorithm) {
  for (const auto& [option, given] : {std::pair{"--mesh", &arguments.mesh},
                                      {"--order", &arguments.order},
                                      {"--per-dimension", &arguments.per_dimension}})
    if (!given->empty())
      fail(
          "{}: it has no effect here (it goes with --algorithm hierarchical, not {}). Leave one "
          "out.",
          option, algorithm);
}

bool names_mesh(const CollectiveArguments& arguments) {
  return !arguments.mesh.empty() || !arguments.order.empty() || !arguments.per_dimension.empty();
}

}  // namespace

void add_collective_options(longhaul::Arguments& command, CollectiveArguments& arguments) {
  command.option("--kind", arguments.kind,
                 "all-reduce, reduce-scatter, all-gather, all-to-all, broadcast, reduce, gather or "
                 "scatter (from or to the first of the group)");
  command.option("--bytes", arguments.bytes, "of the whole vector, as in 64MiB");
  command.option("--group", arguments.group, "ranks, as in 0-15 or 0,3,5 (default: all)");
  command.option(
      "--algorithm", arguments.algorithm,
      "best (default; hierarchical beside --mesh), all, ring, halving, exchange, direct, "
      "tree, double-tree or hierarchical");
  command.option("--mesh", arguments.mesh,
                 "of hierarchical: sizes of dimensions, the last fastest, as in 2x8 (default: "
                 "datacenters x nodes x ranks)");
  command.option(
      "--order", arguments.order,
      "of dimensions, as in 1,0 (default: reductions near ones first, gathers far ones)");
  command.option(
      "--per-dimension", arguments.per_dimension,
      "an algorithm for each dimension of the mesh, as in exchange,ring (default: ring)");
  command.option("--pieces", arguments.pieces,
                 "that follow each other through the levels (default: 1; best chooses)");
}

CollectiveRequest read_collective(const CollectiveArguments& arguments, const Scenario& scenario) {
  CollectiveRequest request;
  plan::Collective& collective = request.collective;
  collective.kind = kind_of(arguments.kind);
  collective.size = bytes_of(arguments.bytes);
  collective.members = group_of(arguments.group, scenario);
  if (!arguments.pieces.empty())
    collective.pieces = whole_number("--pieces", arguments.pieces, 1, kMostPieces);
  const std::string algorithm = !arguments.algorithm.empty() ? arguments.algorithm
                                : names_mesh(arguments)      ? "hierarchical"
                                                             : "best";
  if (algorithm == "best" || algorithm == "all") {
    refuse_mesh(arguments, algorithm);
    request.wanted = algorithm == "best" ? Wanted::best : Wanted::all;
    if (algorithm == "best" && !arguments.pieces.empty())
      fail(
          "--pieces: it has no effect here (best chooses them). Leave it out, or name an "
          "algorithm.");
  } else {
    request.wanted = Wanted::one;
    collective.algorithm = choice<CollectiveAlgorithm>("--algorithm", algorithm);
    if (collective.algorithm == CollectiveAlgorithm::hierarchical) {
      collective.mesh = mesh_of(arguments, collective, scenario);
    } else {
      refuse_mesh(arguments, algorithm);
    }
    require_none(plan::why_no_steps(collective));
  }
  return request;
}

std::string algorithm_text(const plan::Collective& collective) {
  const plan::Mesh& mesh = collective.mesh;
  if (mesh.sizes.empty()) return plan::to_string(collective.algorithm);
  std::vector<const char*> names;
  for (const CollectiveAlgorithm each : mesh.algorithms) names.push_back(plan::to_string(each));
  return fmt::format("{} by {}: {}", fmt::join(mesh.sizes, "x"), fmt::join(mesh.order, ","),
                     fmt::join(names, ", "));
}

}  // namespace longhaul::report
