#include "harness/collectives/collective_list.hpp"

#include "base/program/command_words.hpp"
#include "base/program/option_values.hpp"
#include "base/unit_text.hpp"
#include "planner/collectives/collective_times.hpp"

namespace longhaul::harness {
namespace {

/// The sizes from the first to the last, each twice the one before.
void add_doubling(const char* option, const std::string& first, const std::string& last,
                  std::vector<std::string>& sizes) {
  const Bytes begin = value_of(option, [&] { return parse_bytes(first); });
  const Bytes end = value_of(option, [&] { return parse_bytes(last); });
  constexpr Bytes kLargestSize{1LL << 50};
  if (begin < Bytes{1} || end < begin || end > kLargestSize)
    fail(
        "{}: {}..{} is no range of sizes (from 1 byte, ascending, to 1024 TiB). Write "
        "64KiB..64MiB.",
        option, first, last);
  for (Bytes size = begin; size <= end; size = size * 2)
    sizes.push_back(std::to_string(size.count()) + "B");
}

void add_of_one(const report::CollectiveArguments& arguments, const Scenario& scenario,
                std::vector<plan::Collective>& all) {
  const report::CollectiveRequest request = report::read_collective(arguments, scenario);
  if (request.wanted == report::Wanted::one) {
    all.push_back(request.collective);
  } else if (request.wanted == report::Wanted::best) {
    all.push_back(planner::best_collective(request.collective, scenario).or_throw().collective);
  } else {
    for (plan::Collective& each : planner::every_algorithm(request.collective, scenario))
      all.push_back(std::move(each));
  }
}

}  // namespace

std::vector<std::string> listed_sizes(const char* option, const std::string& text) {
  std::vector<std::string> sizes;
  for (const std::string& word : words_of(text, ',')) {
    const std::size_t dots = word.find("..");
    if (dots == std::string::npos)
      sizes.push_back(word);
    else
      add_doubling(option, word.substr(0, dots), word.substr(dots + 2), sizes);
  }
  return sizes;
}

std::vector<plan::Collective> listed_collectives(const report::CollectiveArguments& given,
                                                 const Scenario& scenario) {
  std::vector<plan::Collective> all;
  report::CollectiveArguments one = given;
  for (const std::string& kind : words_of(given.kind, ',')) {
    one.kind = kind;
    for (const std::string& group : words_of(given.group, '/')) {
      one.group = group;
      for (const std::string& bytes : listed_sizes("--bytes", given.bytes)) {
        one.bytes = bytes;
        for (const std::string& algorithm : words_of(given.algorithm, ',')) {
          one.algorithm = algorithm;
          add_of_one(one, scenario, all);
        }
      }
    }
  }
  return all;
}

}  // namespace longhaul::harness
