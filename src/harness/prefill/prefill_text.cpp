#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/prefill/prefill_record.hpp"
#include "report/tables.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

/// Empty where none leave.
std::string kv_text(const ordered_json& schedule) {
  if (!schedule.contains("kv")) return {};
  const auto mean = [&](const char* parts) {
    return to_text(Duration{static_cast<std::int64_t>(schedule[parts]["kv"].get<double>())});
  };
  const ordered_json& delay = schedule["training_delay"];
  return fmt::format(
      "keys and values, {}: {} of {} slices, there {} after the last stage ({} predicted); {} "
      "messages of training waited for a slice, {} in all ({} predicted)\n",
      schedule["kv"]["sending"].get<std::string>(), schedule["kv"]["slices"].get<std::int64_t>(),
      schedule["kv"]["predicted_slices"].get<std::int64_t>(), mean("ttft_parts_ns"),
      mean("predicted_ttft_parts_ns"), delay["messages_bound_by_kv"].get<std::int64_t>(),
      to_text(Duration{delay["by_kv_ns"].get<std::int64_t>()}),
      to_text(Duration{schedule["predicted_training_delay"]["by_kv_ns"].get<std::int64_t>()}));
}

/// Of the GPU that came nearest to its capacity; empty where none is known.
std::string memory_text(const ordered_json& schedule) {
  if (!schedule.contains("memory")) return {};
  const auto share = [](const ordered_json& gpu, const char* which) {
    return gpu[which].get<double>() / gpu["capacity_bytes"].get<double>();
  };
  const ordered_json* fullest = nullptr;
  for (const ordered_json& gpu : schedule["memory"]["gpus"])
    if (fullest == nullptr || share(gpu, "peak_bytes") > share(*fullest, "peak_bytes"))
      fullest = &gpu;
  if (fullest == nullptr) return {};
  return fmt::format(
      "memory: rank {} was fullest, {} of {} ({} predicted); {} refused for memory\n",
      (*fullest)["rank"].get<int>(), to_text(Bytes{(*fullest)["peak_bytes"].get<std::int64_t>()}),
      to_text(Bytes{(*fullest)["capacity_bytes"].get<std::int64_t>()}),
      to_text(Bytes{(*fullest)["predicted_peak_bytes"].get<std::int64_t>()}),
      schedule["requests"]["refused"]["memory"].get<std::int64_t>());
}

/// Empty where blocks were timed.
std::string real_text(const ordered_json& record) {
  if (!record.contains("real")) return {};
  const ordered_json& real = record["real"];
  const auto number = [&](const char* name) {
    return real[name].is_null() ? std::string{"-"}
                                : fmt::format("{:.1e}", real[name].get<double>());
  };
  std::string text = fmt::format(
      "real layers: {} prompts of {} tokens held against one rank, logits of last tokens differ by "
      "at most {}",
      real["prompts"].get<std::int64_t>(), real["tokens"].get<std::int64_t>(),
      number("logits_largest_difference"));
  if (!real["kv_bytes_equal"].is_null())
    text += fmt::format("; {} bytes of keys and values {}, {} tokens decoded from them {}",
                        real["kv_bytes"].get<std::int64_t>(),
                        real["kv_bytes_equal"].get<bool>() ? "as sent" : "NOT as sent",
                        real["decoded_tokens"].get<std::int64_t>(),
                        real["decoded_equal"].get<bool>() ? "equal" : "NOT equal");
  const ordered_json& training = record["training"];
  return text + fmt::format(
                    "\ntraining: gradients of {} iterations held against one rank ({:g} is "
                    "allowed)\n",
                    training["iterations_checked"].get<int>(),
                    training["allowed_difference"].get<double>());
}

/// What stays idle, by cause: shares of the GPUs' time, of what is 0.05% or more somewhere.
std::string idle_text(const ordered_json& record) {
  const ordered_json& schedule = record["schedules"][0];
  const ordered_json& predicted = schedule["predicted_idle_ns"];
  const double gpus = record["training_ranks"].get<double>();
  double wall = record["pairs"].value("half_on_ns", 0.0), unused = 0;
  for (const ordered_json& ns : record["pairs"]["on_ns"]) wall += ns.get<double>();
  for (const auto& [cause, ns] : predicted.items()) unused += ns.get<double>();
  if (wall <= 0 || unused <= 0) return {};
  // No record has the predicted wall time: it follows from what is unused of it.
  const double predicted_all =
      unused / (1 - schedule["predicted_utilisation"]["total"].get<double>());
  std::string causes;
  for (const auto& [cause, ns] : schedule["idle_ns"].items()) {
    const double share = ns.get<double>() / (gpus * wall);
    const double foretold = predicted[cause].get<double>() / predicted_all;
    if (std::max(share, foretold) < 0.0005) continue;
    causes += fmt::format("{}{} {:.1f}% ({:.1f})", causes.empty() ? "" : ", ", cause, 100 * share,
                          100 * foretold);
  }
  return causes.empty() ? "" : fmt::format("idle (predicted): {}\n", causes);
}

}  // namespace

std::string why_not_sound(const PrefillRun& run) {
  if (run.wrong > 0) {
    std::string which;
    for (const StretchPair& pair : run.pairs)
      for (const PlayedRequest& each : pair.with.requests)
        if (each.came_wrong)
          which += fmt::format("keys and values of request {} came wrong; ", each.request);
    if (run.real)
      for (const std::string& wrong : run.real->training.wrong) which += wrong + "; ";
    return fmt::format("{}{} messages or blocks were wrong{}", which, run.wrong,
                       run.wrong_kinds.empty() ? "" : " (" + run.wrong_kinds + ")");
  }
  if (run.real && run.real->served.wrong_prompts > 0)
    return fmt::format("{} of {} prompts are not those of one rank: {}",
                       run.real->served.wrong_prompts, run.real->served.prompts,
                       fmt::join(run.real->served.wrong, "; "));
  if (run.real && run.real->served.prompts == 0 && !run.answers.empty() && !run.is_stopped)
    return fmt::format(
        "no prompt of {} was done: nothing of their layers was held against one rank (give "
        "bubbles that hold them, a wider prefill.guard, or measured costs)",
        run.answers.size());
  for (const StretchPair& pair : run.pairs)
    for (const prefill::GpuMemory& each : pair.with.memory)
      if (!each.fits())
        return fmt::format("rank {} held {} bytes at once, of {} (memory.capacity)", each.rank,
                           each.peak.count(), each.capacity.count());
  std::set<std::int64_t> answered;
  for (const auto* const all : {&run.answers, &run.cancelled, &run.failed})
    for (const prefill::Decision& each : *all)
      if (!answered.insert(each.request).second)
        return fmt::format("request {} was answered twice", each.request);
  const std::set<std::int64_t> offered(run.offered.begin(), run.offered.end());
  for (const std::int64_t request : offered)
    if (!answered.contains(request)) return fmt::format("request {} was never answered", request);
  for (const std::int64_t request : answered)
    if (!offered.contains(request))
      return fmt::format("request {} was answered, and no one had asked it", request);
  std::set<std::int64_t> played;
  for (const StretchPair& pair : run.pairs)
    for (const PlayedRequest& each : pair.with.requests) {
      if (!played.insert(each.request).second)
        return fmt::format("request {} was played twice", each.request);
      if (each.is_done && each.sum_of_parts() != each.ttft)
        return fmt::format("the parts of request {} do not add up to its TTFT", each.request);
      if (each.is_done && each.ttft <= Duration{})
        return fmt::format("request {} was done before it arrived", each.request);
    }
  const auto placed = std::ranges::count_if(
      run.answers, [](const prefill::Decision& each) { return !each.refused; });
  if (placed != std::ssize(played))
    return fmt::format("{} requests were placed and {} played", placed, played.size());
  return {};
}

std::string prefill_text(const ordered_json& record) {
  const ordered_json& schedule = record["schedules"][0];
  const ordered_json& pairs = record["pairs"];
  const auto percent = [](const ordered_json& share) {
    return share.is_null() ? std::string{"-"} : report::percent_text(share.get<double>()) + "%";
  };
  const auto time = [](const ordered_json& ns) {
    return ns.is_null() ? std::string{"-"} : to_text(Duration{ns.get<std::int64_t>()});
  };
  Table table{
      {{"", Align::left}, {"training"}, {"with prefill"}, {"useful"}, {"TTFT p50"}, {"p99"}}};
  const auto add = [&](const char* name, const ordered_json& shares, const ordered_json& ttft) {
    table.add_row({name, percent(shares["training"]), percent(shares["total"]),
                   percent(shares["useful"]), ttft.is_null() ? "-" : time(ttft["p50"]),
                   ttft.is_null() ? "-" : time(ttft["p99"])});
  };
  add("predicted", schedule["predicted_utilisation"], schedule["predicted_ttft_ns"]);
  add("measured", schedule["utilisation"], schedule["ttft_ns"]);
  const ordered_json& share = schedule["utilisation"];
  const ordered_json& without = share["bounds_left_out"];
  const std::string why = without.is_null() ? std::string{} : "; " + without.get<std::string>();
  const auto count = [](const ordered_json& counts, const char* which) {
    return counts[which].get<std::int64_t>();
  };
  const ordered_json& requests = schedule["requests"];
  const ordered_json& expected = schedule["predicted_requests"];
  std::string text =
      fmt::format("{}: {}, {}, {}\n\n{}\n", record["scenario"].get<std::string>(),
                  schedule["schedule"].get<std::string>(), record["load"].get<std::string>(),
                  record["policy"].get<std::string>(), table.text());
  text += fmt::format("no placement exceeds {} ({}){}\n", percent(share["upper_bound"]),
                      share["bound_reason"].get<std::string>(), why);
  text += fmt::format("requests: {} offered, {} done ({} predicted), {} failed\n",
                      count(requests, "offered"), count(requests, "done"), count(expected, "done"),
                      count(requests, "failed"));
  if (requests.contains("declined"))
    text += fmt::format("live: {} declined, {} answers came late, the latest by {}\n",
                        count(requests, "declined"), count(requests, "late_answers"),
                        time(requests["latest_answer_ns"]));
  const ordered_json& medians = pairs["ratio_of_medians"];
  text += fmt::format("training with prefill to without: {} of medians, ",
                      medians.is_null() ? "-" : fmt::format("{:.4f}", medians.get<double>()));
  text += pairs["interval"].is_null()
              ? std::string{"no interval"}
              : fmt::format("{:.4f} to {:.4f}", pairs["interval"][0].get<double>(),
                            pairs["interval"][1].get<double>());
  const ordered_json& delay = schedule["training_delay"];
  return text +
         fmt::format(" ({}); {} blocks waited for a prefill, {} in all\n",
                     pairs["verdict"].get<std::string>(),
                     delay["blocks_bound_by_prefill"].get<std::int64_t>(),
                     time(delay["total_ns"])) +
         idle_text(record) + kv_text(schedule) + memory_text(schedule) + real_text(record);
}

}  // namespace longhaul::harness
