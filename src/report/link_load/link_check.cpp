#include "report/link_load/link_check.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/unit_text.hpp"

namespace longhaul::report {
namespace {

using nlohmann::ordered_json;

/// Of runs that do not state theirs: what `--credit` is by default.
constexpr Duration kDefaultCredit = std::chrono::milliseconds{1};

/// No run waits so long for an op.
constexpr Duration kMostCredit = std::chrono::hours{24};

ordered_json environment_of(const trace::RunInfo& info) {
  ordered_json stated = ordered_json::parse(info.environment, nullptr, false);
  return stated.is_object() ? stated : ordered_json::object();
}

/// 3 of "best@3", "1f1b+change@3": a schedule that was planned during the run; 0 of others.
int planned_at(const std::string& schedule) {
  const std::size_t mark = schedule.rfind('@');
  if (mark == std::string::npos) return 0;
  int iteration = 0;
  const char* const end = schedule.data() + schedule.size();
  const auto [rest, problem] = std::from_chars(schedule.data() + mark + 1, end, iteration);
  return problem == std::errc{} && rest == end ? iteration : 0;
}

}  // namespace

LinkCheck::LinkCheck(const trace::RunInfo& info, std::size_t memory_bytes)
    : source_text_{info.scenario},
      options_{scenario::stored_options(info.scenario)},
      time_scale_{info.time_scale},
      held_{memory_bytes} {
  const ordered_json stated = environment_of(info);
  emulated_ = stated.value("emulate", ordered_json("on")) != "off";
  const ordered_json credit = stated.value("lateness_credit_ns", ordered_json());
  credit_ = kDefaultCredit;
  if (credit.is_number_unsigned())
    credit_ =
        Duration{std::clamp(credit.get<std::int64_t>(), std::int64_t{0}, kMostCredit.count())};
}

LinkCheck::LinkCheck(const trace::RunInfo& info, Scenario played) : LinkCheck{info} {
  known_ = std::move(played);
  options_ = {};
}

Scenario LinkCheck::scenario_at(int iteration) const {
  if (known_) return *known_;
  // Simulated rows have the scenario's own times, whatever its time_scale.
  const std::vector<std::string> played{fmt::format("run.time_scale={}", time_scale_)};
  std::string text = source_text_;
  scenario::store_overrides(text, played);
  return scenario::read_stored(text, "the trace's scenario", iteration).as_played();
}

void LinkCheck::begin(const char* group, std::int64_t slack_ns, const Timeline& names) {
  group_ = group;
  slack_ns_ = slack_ns;
  names_ = &names;
  networks_.clear();
}

void LinkCheck::end() {
  finish_iteration();
  key_.reset();
}

void LinkCheck::add(std::span<const TimelineRow> rows) {
  if (rows.empty()) return;
  const IterationKey key{rows.front().schedule, rows.front().iteration};
  if (key_ != key) {
    finish_iteration();
    begin_iteration(key);
  }
  if (network_ == nullptr) return;
  std::int64_t collectives = 0;
  for (const TimelineRow& row : rows) {
    if (row.kind == RowKind::send) add_send(row);
    if (is_collective(row.kind)) ++collectives;
  }
  if (collectives > 0)
    left_out("collectives that are one op, their messages are not in the trace") += collectives;
}

void LinkCheck::begin_iteration(IterationKey key) {
  key_ = key;
  network_ = network_of(key);
  way_ = nullptr;
  from_ = to_ = -1;
}

int LinkCheck::iteration_of_links(IterationKey key) const {
  if (is_measured()) return key.iteration;
  return planned_at(names_->schedules[at(key.schedule)]);
}

TraceNetwork* LinkCheck::network_of(IterationKey key) {
  if (!unreadable_.empty()) return nullptr;
  const int iteration = iteration_of_links(key);
  if (!emulated_ && (is_measured() || iteration > 0)) {
    ++left_out("iterations whose emulation was off, the network was another one");
    return nullptr;
  }
  const auto before = to_size(std::ranges::count_if(
      options_.changes, [&](const auto& change) { return change.iteration <= iteration; }));
  auto& network = networks_[before];
  if (network) return network.get();
  try {
    Scenario scenario = scenario_at(iteration);
    network = std::make_unique<TraceNetwork>(is_measured() ? std::move(scenario)
                                                           : without_weather(std::move(scenario)));
    return network.get();
  } catch (const Error& error) {
    unreadable_ = source_text_.empty() ? "the trace has no scenario" : error.what();
    return nullptr;
  }
}

void LinkCheck::add_send(const TimelineRow& row) {
  if (row.size_bytes <= 0 || !has_run(row)) return;
  if (row.request >= 0 && row.peer < network_->scenario().training_ranks()) {
    ++left_out("activations between stages of prompts, which hold no link");
    return;
  }
  if (row.rank != from_ || row.peer != to_) {
    const int ranks = network_->scenario().ranks();
    if (row.peer < 0 || row.rank >= ranks || row.peer >= ranks)
      return problems_.add(
          group_ + ": rank that the scenario lacks",
          fmt::format("{}: op {} (schedule {}, iteration {}) goes from rank {} to {} (the scenario "
                      "has {} ranks).",
                      group_, row.op, row.schedule, row.iteration, row.rank, row.peer, ranks));
    from_ = row.rank;
    to_ = row.peer;
    way_ = &network_->between(Rank{from_}, Rank{to_});
    left_out_of_way_ = way_->left_out.empty() ? nullptr : &left_out(way_->left_out);
  }
  if (!way_->linked)
    problems_.add(group_ + ": message without a link",
                  fmt::format("{}: op {} (schedule {}, iteration {}) goes from rank {} to {} (no "
                              "link of the scenario leads there).",
                              group_, row.op, row.schedule, row.iteration, row.rank, row.peer));
  if (left_out_of_way_ != nullptr) ++*left_out_of_way_;
  if (way_->limited.empty()) return;
  ++messages_;
  for (const std::int32_t resource : way_->limited)
    held_.add(resource, {row.start_ns, row.end_ns, row.size_bytes});
}

void LinkCheck::finish_iteration() {
  if (network_ == nullptr) return;
  const Duration credit = is_measured() ? credit_ : Duration::zero();
  std::optional<LoadScan> scan;
  std::int32_t current = -1;
  const auto finish = [&] {
    if (scan) judge(current, scan->finish());
  };
  held_.take(
      [&](std::int32_t resource) {
        finish();
        current = resource;
        scan.emplace(network_->limited(resource).rate, credit);
      },
      [&](const LinkHold& hold) { scan->add(hold); });
  finish();
  network_ = nullptr;
}

void LinkCheck::judge(std::int32_t resource, const LoadWindow& window) {
  TraceNetwork::Limited& limited = network_->limited(resource);
  if (!limited.checked) checked_.insert(limited.name);
  limited.checked = true;
  if (window.excess_ns <= static_cast<double>(slack_ns_)) return;
  const double needed = window.bytes * 8e9 / limited.rate.bits_per_second();
  problems_.add(
      group_ + ": bytes beyond rate x time",
      fmt::format("{}: {} carries {:.0f} bytes from {} to {} ns (schedule {}, iteration {}), which "
                  "take {:.0f} ns at its {}.",
                  group_, limited.name, window.bytes, window.begin_ns, window.end_ns,
                  key_->schedule, key_->iteration, needed, to_text(limited.rate)));
}

std::vector<std::string> LinkCheck::not_checked() const {
  std::vector<std::string> lines;
  if (!unreadable_.empty())
    lines.push_back(fmt::format("links, the scenario cannot be read ({})", unreadable_));
  for (const auto& [what, rows] : left_out_) lines.push_back(fmt::format("{} ({})", what, rows));
  return lines;
}

std::vector<std::string> LinkCheck::notes() const {
  std::vector<std::string> lines;
  if (messages_ > 0)
    lines.push_back(
        fmt::format("{} messages: none of {} links, interfaces and ports carries more "
                    "than rate x time",
                    messages_, checked_.size()));
  if (messages_ == 0 && not_checked().empty())
    lines.emplace_back("no message holds a link, interface or port that has a rate");
  for (const std::string& what : not_checked()) lines.push_back("not checked: " + what);
  return lines;
}

ordered_json LinkCheck::json() const {
  return {{"resources", checked_.size()}, {"messages", messages_}, {"not_checked", not_checked()}};
}

}  // namespace longhaul::report
