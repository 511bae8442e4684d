#include "profile/import/imported_profile.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/unit_text.hpp"
#include "scenario/files/profile_table.hpp"

namespace longhaul::profile {
namespace {

/// The middle one; of an even number the lower of two.
Duration middle(std::vector<Duration> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return values[(values.size() - 1) / 2];
}

std::vector<ImportedTask> tasks_of(const std::string& operation,
                                   const std::vector<const OperatorRun*>& runs) {
  std::map<std::size_t, std::size_t> lengths;
  for (const OperatorRun* run : runs) ++lengths[run->kernels.size()];
  const std::size_t usual =
      std::ranges::max_element(lengths, {}, [](const auto& each) { return each.second; })->first;
  std::vector<ImportedTask> tasks;
  for (std::size_t position = 0; position < usual; ++position) {
    std::vector<Duration> times, gaps;
    std::string name;
    for (const OperatorRun* run : runs) {
      if (run->kernels.size() != usual) continue;
      const KernelRun& kernel = run->kernels[position];
      if (name.empty()) name = kernel.name;
      times.push_back(kernel.length);
      const bool last = position + 1 == usual;
      const Duration end = kernel.start + kernel.length;
      gaps.push_back(last ? Duration{}
                          : std::max(Duration{}, run->kernels[position + 1].start - end));
    }
    tasks.push_back({operation, name.empty() ? "unnamed" : cell_of(name), position, middle(times),
                     middle(gaps)});
  }
  return tasks;
}

}  // namespace

Duration OperatorRun::length() const {
  if (kernels.empty()) return {};
  Duration end{};
  for (const KernelRun& each : kernels) end = std::max(end, each.start + each.length);
  return end - kernels.front().start;
}

ImportedProfile imported(const std::vector<OperatorRun>& runs, std::size_t iterations) {
  using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  std::map<Key, std::vector<const OperatorRun*>> by_key;
  std::vector<Key> order;
  for (const OperatorRun& run : runs) {
    Key key{run.part, run.block, run.operation, run.shape, run.type};
    auto& same = by_key[key];
    if (same.empty()) order.push_back(key);
    same.push_back(&run);
  }
  ImportedProfile profile;
  std::map<std::string, bool> has_tasks;
  for (const Key& key : order) {
    const auto& same = by_key[key];
    std::vector<Duration> lengths;
    for (const OperatorRun* run : same) lengths.push_back(run->length());
    const auto& [part, block, operation, shape, type] = key;
    const bool divides = iterations > 0 && same.size() % iterations == 0;
    profile.operators.push_back({part, block, operation, shape, type, same.size(),
                                 divides ? same.size() / iterations : same.size(), middle(lengths),
                                 *std::ranges::min_element(lengths)});
    const std::string name = shape.empty() ? operation : operation + ' ' + shape;
    if (!std::exchange(has_tasks[name], true))
      for (ImportedTask& task : tasks_of(name, same)) profile.tasks.push_back(std::move(task));
  }
  return profile;
}

void require_readable(const ImportedProfile& profile, const std::string& source) {
  if (std::max(profile.operators.size(), profile.tasks.size()) > scenario::kMostProfileRows)
    fail("{}: there are {} operators and {} tasks ({} are the limit of a profile). Profile less.",
         source, profile.operators.size(), profile.tasks.size(), scenario::kMostProfileRows);
  for (const ImportedOperator& each : profile.operators) {
    if (each.calls > to_size(scenario::kMostProfileCalls))
      fail(
          "{}: {} {} is called {} times an iteration ({} are the limit of a profile; iterations "
          "are "
          "told by \"ProfilerStep#\"). Call profiler.step() after each, or profile fewer.",
          source, each.operation, each.shape, each.calls, scenario::kMostProfileCalls);
    if (each.median > scenario::kLongestProfileCall)
      fail("{}: {} {} takes {} ({} is the limit of a profile). Look at its kernels' \"dur\".",
           source, each.operation, each.shape, longhaul::to_text(each.median),
           longhaul::to_text(scenario::kLongestProfileCall));
  }
  for (const ImportedTask& each : profile.tasks)
    if (std::max(each.median, each.gap) > scenario::kLongestProfileCall)
      fail("{}: {} of {} takes {} and waits {} ({} is the limit of a profile). Look at it.", source,
           each.kernel, each.operation, longhaul::to_text(each.median), longhaul::to_text(each.gap),
           longhaul::to_text(scenario::kLongestProfileCall));
}

std::string operators_csv(const ImportedProfile& profile) {
  std::string text = "part,block,operator,shape,type,calls,n,median_ns,min_ns\n";
  for (const ImportedOperator& each : profile.operators)
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", each.part, each.block, each.operation,
                        each.shape, each.type, each.calls, each.runs, each.median.count(),
                        each.least.count());
  return text;
}

std::string tasks_csv(const ImportedProfile& profile) {
  std::string text = "operator,kernel,position,median_ns,gap_ns\n";
  for (const ImportedTask& each : profile.tasks)
    text += fmt::format("{},{},{},{},{}\n", each.operation, each.kernel, each.position,
                        each.median.count(), each.gap.count());
  return text;
}

std::string cell_of(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string cell;
  for (const char c : text.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(c);
    cell += c == ',' ? ';' : c == '"' ? '\'' : code < 0x20 || code == 0x7F ? '?' : c;
  }
  return cell;
}

}  // namespace longhaul::profile
