#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "harness/records/profile_record.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

constexpr double kAddsUp = 0.03;

/// How many operators the sums of their tasks come to, and which is farthest.
struct AddedUp {
  std::size_t within = 0;
  const TaskSum* farthest = nullptr;
};

AddedUp added_up(const std::vector<TaskSum>& sums, double extra_ns) {
  AddedUp result;
  for (const TaskSum& each : sums) {
    const double off = std::abs(each.difference(extra_ns));
    if (off <= kAddsUp) ++result.within;
    if (result.farthest == nullptr || off > std::abs(result.farthest->difference(extra_ns)))
      result.farthest = &each;
  }
  return result;
}

std::string full_name(const OperatorTimes& times) {
  return fmt::format("{} {} of {}, {}", times.call.operation, times.call.shape, times.part,
                     times.block);
}

ordered_json added_up_json(const std::vector<TaskSum>& sums, double extra_ns) {
  const AddedUp result = added_up(sums, extra_ns);
  ordered_json json = {{"within_3_percent", result.within}};
  if (result.farthest != nullptr) {
    json["farthest"] = full_name(*result.farthest->timed);
    json["farthest_percent"] = 100 * result.farthest->difference(extra_ns);
  }
  return json;
}

ordered_json sum_json(const TaskSum& sum, double host_ns) {
  const OperatorTimes& times = *sum.timed;
  ordered_json json = {{"part", times.part},
                       {"block", times.block},
                       {"operator", times.call.operation},
                       {"shape", times.call.shape},
                       {"type", longhaul::to_string(times.call.type)}};
  json["kernels"] = ordered_json::array();
  for (const TracedTask& task : sum.traced->tasks)
    json["kernels"].push_back(short_kernel_name(task.kernel));
  json["samples"] = sum.traced->samples;
  json["left_out"] = sum.traced->others;
  json["sum_ns"] = std::llround(sum.sum_ns);
  json["median_ns"] = std::llround(sum.median_ns);
  json["traced_median_ns"] = std::llround(sum.traced_median_ns);
  json["difference_percent"] = 100 * sum.difference();
  json["with_host_percent"] = 100 * sum.difference(host_ns);
  return json;
}

}  // namespace

ordered_json tasks_json(const ModelProfile& profile) {
  const TaskProfile& tasks = *profile.tasks;
  const std::vector<TaskSum> sums = task_sums(profile.operators, tasks);
  ordered_json json = {{"operators", sums.size()},
                       {"host_ns", std::llround(tasks.host_ns)},
                       {"alone", added_up_json(sums, 0)},
                       {"with_host", added_up_json(sums, tasks.host_ns)},
                       {"dropped_records", tasks.dropped},
                       {"unread_buffers", tasks.unread_buffers},
                       {"tasks_without_times", tasks.untimed},
                       {"notes", task_notes(tasks)}};
  json["sums"] = ordered_json::array();
  for (const TaskSum& each : sums) json["sums"].push_back(sum_json(each, tasks.host_ns));
  return json;
}

std::string tasks_text(const ModelProfile& profile) {
  if (!profile.tasks) return "";
  const TaskProfile& tasks = *profile.tasks;
  const std::vector<TaskSum> sums = task_sums(profile.operators, tasks);
  const auto counted = [&](double extra_ns) {
    const AddedUp result = added_up(sums, extra_ns);
    std::string text = fmt::format("{} of {}", result.within, sums.size());
    if (result.farthest != nullptr)
      text += fmt::format(" (farthest: {}, {:+.1f}%)", full_name(*result.farthest->timed),
                          100 * result.farthest->difference(extra_ns));
    return text;
  };
  std::string text = fmt::format(
      "tasks with their gaps are within 3% of their operators in {}; with the {:.1f} us that the "
      "host takes to begin one and to see its end in {}\n",
      counted(0), tasks.host_ns / 1000, counted(tasks.host_ns));
  for (const std::string& note : task_notes(tasks)) text += fmt::format("tasks: {}\n", note);
  return text;
}

}  // namespace longhaul::harness
