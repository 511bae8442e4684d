#include "harness/profile/task_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <unordered_map>

#include <cxxabi.h>
#include <fmt/format.h>

#include "base/index.hpp"
#include "trace/export/text_writer.hpp"

namespace longhaul::harness {
namespace {

/// The tasks of one sample, by their starts.
using TaskRun = std::vector<const cuda::TaskActivity*>;

std::string demangled_kernel(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free};
  return name.starts_with("_Z") && text != nullptr ? std::string{text.get()} : name;
}

std::unordered_map<std::uint64_t, TaskRun> runs_of(const cuda::ActivityRecords& records,
                                                   std::size_t& untimed) {
  std::unordered_map<std::uint32_t, std::uint64_t> range_of;
  for (const cuda::LaunchInRange& each : records.launches) range_of[each.launch] = each.range;
  std::unordered_map<std::uint64_t, TaskRun> runs;
  for (const cuda::TaskActivity& task : records.tasks) {
    const auto range = range_of.find(task.launch);
    if (range == range_of.end()) continue;
    if (task.start_ns == 0 || task.end_ns < task.start_ns)
      ++untimed;
    else
      runs[range->second].push_back(&task);
  }
  for (auto& [range, run] : runs)
    std::ranges::stable_sort(run, {}, [](const auto* task) { return task->start_ns; });
  return runs;
}

std::vector<std::string> kernels_of(const TaskRun& run) {
  std::vector<std::string> names;
  for (const cuda::TaskActivity* task : run) names.push_back(task->name);
  return names;
}

std::string number_of_tasks(std::size_t tasks) {
  return fmt::format("{} task{}", tasks, tasks == 1 ? "" : "s");
}

/// The tasks that most of the runs ran; of equally many the longer ones.
std::vector<std::string> usual_kernels(const std::vector<TaskRun>& runs) {
  std::map<std::vector<std::string>, std::size_t> known;
  for (const TaskRun& run : runs) ++known[kernels_of(run)];
  const auto usual = std::ranges::max_element(known, {}, [](const auto& each) {
    return std::pair{each.second, each.first.size()};
  });
  return usual == known.end() ? std::vector<std::string>{} : usual->first;
}

TracedOperator tasks_of_runs(const std::vector<TaskRun>& runs) {
  const std::vector<std::string> usual = usual_kernels(runs);
  TracedOperator traced;
  traced.samples = runs.size();
  std::vector<std::vector<double>> lengths(usual.size()), gaps(usual.size());
  for (const TaskRun& run : runs) {
    if (kernels_of(run) != usual) {
      if (++traced.others == 1)
        traced.other = run.size() == usual.size() ? "other kernels"
                                                  : number_of_tasks(run.size()) +
                                                        fmt::format(" instead of {}", usual.size());
      continue;
    }
    std::int64_t end = 0;
    for (std::size_t i = 0; i < run.size(); ++i) {
      if (i > 0)
        gaps[i - 1].push_back(
            static_cast<double>(std::max<std::int64_t>(0, run[i]->start_ns - end)));
      lengths[i].push_back(static_cast<double>(run[i]->end_ns - run[i]->start_ns));
      end = std::max(end, run[i]->end_ns);
    }
  }
  for (std::size_t i = 0; i < usual.size(); ++i)
    traced.tasks.push_back({demangled_kernel(usual[i]), summarize(lengths[i]).median,
                            gaps[i].empty() ? 0 : summarize(gaps[i]).median});
  return traced;
}

bool is_same_operator(const OperatorTimes& a, const OperatorTimes& b) {
  return a.part == b.part && a.block == b.block && a.call.operation == b.call.operation &&
         a.call.shape == b.call.shape && a.call.type == b.call.type;
}

}  // namespace

double TracedOperator::sum_ns() const {
  double sum = 0;
  for (const TracedTask& task : tasks) sum += task.median_ns + task.gap_ns;
  return sum;
}

TaskProfile task_profile(std::vector<OperatorTimes> operators,
                         const cuda::ActivityRecords& records) {
  TaskProfile profile;
  profile.dropped = records.dropped;
  profile.unread_buffers = records.unread_buffers;
  const auto runs = runs_of(records, profile.untimed);
  std::vector<std::string> names;
  std::map<std::string, std::vector<TaskRun>> by_name;
  for (const OperatorTimes& each : operators) {
    std::vector<TaskRun> own;
    for (const std::uint64_t range : each.ranges) {
      const auto found = runs.find(range);
      own.push_back(found == runs.end() ? TaskRun{} : found->second);
    }
    profile.traced.push_back(tasks_of_runs(own));
    const std::string name = each.call.operation + ' ' + each.call.shape;
    std::vector<TaskRun>& all = by_name[name];
    if (all.empty()) names.push_back(name);
    all.insert(all.end(), own.begin(), own.end());
  }
  for (const std::string& name : names)
    profile.table.emplace_back(name, tasks_of_runs(by_name[name]));
  profile.operators = std::move(operators);
  return profile;
}

TaskProfile trace_tasks(nn::TensorOps& math, const nn::ModelShape& shape, int samples,
                        cuda::TaskTrace* trace) {
  const OperatorTimes smallest = smallest_operator(math, samples);
  if (trace != nullptr) trace->start();
  const OperatorTimes smallest_traced = smallest_operator(math, samples, trace);
  std::vector<OperatorTimes> operators = operator_times(math, shape, samples, trace);
  if (trace == nullptr) return {};
  const cuda::ActivityRecords records = trace->stop();
  TaskProfile profile = task_profile(std::move(operators), records);
  const double tasks = task_profile({smallest_traced}, records).traced.front().sum_ns();
  profile.host_ns = std::max(0.0, summarize(smallest.samples).median - tasks);
  return profile;
}

std::string tasks_csv(const TaskProfile& profile) {
  std::string text = "operator,kernel,position,median_ns,gap_ns\n";
  for (const auto& [name, traced] : profile.table)
    for (std::size_t i = 0; i < traced.tasks.size(); ++i)
      text += fmt::format("{},{},{},{:.0f},{:.0f}\n", name, trace::csv_cell(traced.tasks[i].kernel),
                          i, traced.tasks[i].median_ns, traced.tasks[i].gap_ns);
  return text;
}

std::vector<std::string> task_notes(const TaskProfile& profile) {
  std::vector<std::string> notes;
  if (profile.dropped + profile.unread_buffers + profile.untimed > 0)
    notes.push_back(
        fmt::format("CUPTI dropped {} records, {} of its buffers could not be read, it has no "
                    "times of {} tasks",
                    profile.dropped, profile.unread_buffers, profile.untimed));
  for (const auto& [name, traced] : profile.table) {
    if (traced.tasks.empty()) notes.push_back(fmt::format("{}: no task was recorded", name));
    if (traced.others > 0)
      notes.push_back(fmt::format("{}: {} of {} samples ran other tasks ({}) and are left out",
                                  name, traced.others, traced.samples, traced.other));
  }
  return notes;
}

std::vector<TaskSum> task_sums(const std::vector<OperatorTimes>& timed,
                               const TaskProfile& profile) {
  std::vector<TaskSum> sums;
  for (const OperatorTimes& each : timed) {
    const auto found = std::ranges::find_if(
        profile.operators, [&](const OperatorTimes& one) { return is_same_operator(one, each); });
    if (found == profile.operators.end()) continue;
    const TracedOperator& traced = profile.traced[to_size(found - profile.operators.begin())];
    sums.push_back({&each, &traced, summarize(found->samples).median,
                    summarize(each.samples).median, traced.sum_ns()});
  }
  return sums;
}

std::string short_kernel_name(std::string_view name) {
  constexpr std::string_view kNameless = "(anonymous namespace)";
  std::string kept;
  int depth = 0;  // of template arguments
  bool is_function = false;
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (name.substr(at).starts_with(kNameless)) {
      at += kNameless.size() - 1;
      continue;
    }
    const char c = name[at];
    is_function = depth == 0 && c == '(';
    if (is_function) break;
    depth += c == '<' ? 1 : 0;
    if (depth == 0) kept += c;
    depth -= c == '>' && depth > 0 ? 1 : 0;
  }
  return is_function ? kept.substr(kept.find_last_of(" :") + 1) : std::string{name};
}

}  // namespace longhaul::harness
