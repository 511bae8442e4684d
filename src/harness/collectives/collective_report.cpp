#include <nlohmann/json.hpp>

#include "base/table.hpp"
#include "base/unit_text.hpp"
#include "harness/collectives/collective_measurement.hpp"
#include "harness/options/credit.hpp"
#include "plan/critical_messages.hpp"
#include "report/collective_options.hpp"
#include "report/scenario_text.hpp"

namespace longhaul::harness {
namespace {

using nlohmann::ordered_json;

std::string time_text(double ns) { return to_text(Duration{static_cast<std::int64_t>(ns)}); }

std::string rate_text(double bytes_per_second) {
  return fmt::format("{:.3g}", bytes_per_second / 1e9);
}

std::string interval_of(const SampleSummary& summary) {
  if (!summary.median_interval) return "- (n < 6)";
  return fmt::format("{} - {}", time_text(summary.median_interval->low),
                     time_text(summary.median_interval->high));
}

std::string time_of(const std::optional<TimedRuns>& runs) {
  return runs ? time_text(runs->summary.median) : "-";
}

/// nccl-tests' redop.
const char* operation_of(CollectiveKind kind) {
  return facts_of(kind).merging == Merging::sum ? "sum" : "none";
}

/// "MPI's own": the one call that is held against our messages.
std::string own_name(const CollectiveMeasurement& measured) {
  return fmt::format("{}'s own", to_string(measured.own_by));
}

/// Our messages' time over that of the own call: how many times as long that takes.
std::string times_of(const std::optional<TimedRuns>& own, const std::optional<TimedRuns>& ours) {
  if (!own || !ours || !(ours->summary.median > 0)) return "-";
  return fmt::format("{:.2f}x", own->summary.median / ours->summary.median);
}

ordered_json runs_json(const std::optional<TimedRuns>& runs) {
  if (!runs) return {};
  return {{"n", runs->summary.n},
          {"median_ns", runs->summary.median},
          {"wrong", runs->wrong},
          {"durations_ns", runs->durations_ns}};
}

bool is_of_one_table(const plan::Collective& a, const plan::Collective& b) {
  return a.kind == b.kind && a.members == b.members;
}

std::string title_of(const plan::Collective& what) {
  return fmt::format("{} among {}", to_text(what.kind),
                     report::counted(std::ssize(what.members), "rank"));
}

/// time, algbw, busbw, #wrong.
void add_nccl_cells(const plan::Collective& collective, const std::optional<TimedRuns>& runs,
                    std::vector<std::string>& row) {
  if (!runs) {
    row.insert(row.end(), 4, "-");
    return;
  }
  const CollectiveRates rates = rates_of(collective, runs->summary.median);
  row.insert(row.end(), {time_text(runs->summary.median), rate_text(rates.algorithm),
                         rate_text(rates.bus), std::to_string(runs->wrong)});
}

std::string nccl_table(std::span<const CollectiveMeasurement> measured, TableWidth width) {
  Table table{{{"algorithm", Align::left},
               {"size B"},
               {"count", Align::right, 2},
               {"type", Align::right, 3},
               {"redop", Align::right, 3},
               {"out: time"},
               {"algbw GB/s", Align::right, 1},
               {"busbw GB/s"},
               {"#wrong"},
               {"in: time"},
               {"algbw GB/s", Align::right, 1},
               {"busbw GB/s"},
               {"#wrong"}}};
  for (const CollectiveMeasurement& each : measured) {
    const plan::Collective& collective = each.predicted.collective;
    const bool native = !each.out_of_place;
    std::vector<std::string> row{native ? own_name(each) : report::algorithm_text(collective),
                                 std::to_string(collective.size.count()),
                                 std::to_string(collective.size.count() / 4), "float",
                                 operation_of(collective.kind)};
    add_nccl_cells(collective, native ? each.own_out_of_place : each.out_of_place, row);
    add_nccl_cells(collective, native ? each.own_in_place : each.in_place, row);
    table.add_row(std::move(row));
  }
  return table.text(width);
}

std::string comparison_table(std::span<const CollectiveMeasurement> measured, TableWidth width) {
  Table table{{{"algorithm", Align::left},
               {"size B"},
               {"pieces", Align::right, 2},
               {"n", Align::right, 3},
               {"out: 95% interval", Align::right, 1},
               {"predicted"},
               {"diff %"},
               {"us/hop", Align::right, 4},
               {own_name(measured.front()) + ", out"},
               {"over ours"},
               {own_name(measured.front()) + ", in"},
               {"over ours"}}};
  for (const CollectiveMeasurement& each : measured) {
    const plan::Collective& collective = each.predicted.collective;
    table.add_row({report::algorithm_text(collective), std::to_string(collective.size.count()),
                   std::to_string(collective.pieces), std::to_string(each.summary.n),
                   interval_of(each.summary), to_text(each.predicted.duration),
                   fmt::format("{:+.1f}", each.difference_percent()),
                   plan::late_text(each.late_per_message()), time_of(each.own_out_of_place),
                   times_of(each.own_out_of_place, each.out_of_place), time_of(each.own_in_place),
                   times_of(each.own_in_place, each.in_place)});
  }
  return table.text(width);
}

/// What would have been measured without credit; beside a pipeline no one knows.
std::string without_credit_text(const CollectiveMeasurement& measured) {
  if (measured.without_credit_ns.empty()) return "-";
  return fmt::format("{:+.2f}", measured.difference_without_credit_percent());
}

std::string over_ties_text(const CollectiveMeasurement& measured) {
  if (!measured.over_ties) return "-";
  return fmt::format("{} - {}", to_text(measured.over_ties->low),
                     to_text(measured.over_ties->high));
}

std::string over_ties_difference(const CollectiveMeasurement& measured) {
  if (!measured.over_ties) return "-";
  return fmt::format("{:+.2f}", measured.difference_over_ties_percent());
}

/// The pipeline's lines below a table.
std::string beside_text(const CollectiveMeasurement& measured) {
  if (!measured.beside) return "";
  const BesideTimes& beside = *measured.beside;
  return fmt::format(
      "{}: {} alone (simulated); the iteration with {}: predicted {}, measured {} "
      "({:+.2f}%)\n",
      report::algorithm_text(measured.predicted.collective), to_text(beside.alone), beside.schedule,
      to_text(beside.predicted), time_text(beside.summary.median), beside.difference_percent());
}

}  // namespace

std::string full_speed_tables(const std::vector<CollectiveMeasurement>& measured,
                              TableWidth width) {
  std::string text;
  for (std::size_t first = 0; first < measured.size();) {
    const plan::Collective& what = measured[first].predicted.collective;
    std::size_t end = first;
    while (end < measured.size() && is_of_one_table(measured[end].predicted.collective, what))
      ++end;
    const auto rows = std::span{measured}.subspan(first, end - first);
    text +=
        fmt::format("{}{}\n{}", first == 0 ? "" : "\n", title_of(what), nccl_table(rows, width));
    if (rows.front().out_of_place) text += "\n" + comparison_table(rows, width);
    first = end;
  }
  return text;
}

std::string collective_tables(const std::string& scenario, const CollectiveSettings& settings,
                              const std::vector<CollectiveMeasurement>& measured,
                              TableWidth width) {
  const bool emulates = settings.emulates();
  const std::string beside =
      settings.beside ? fmt::format(", beside {}", settings.beside->schedule) : "";
  const std::string shared = settings.calls == CollectiveCalls::shared
                                 ? ", read from the senders' memory by ranks of one host"
                                 : "";
  return fmt::format(
      "{}: {}\n\n{}", scenario,
      emulates ? "emulated links, times as played" + beside
               : "the machine as it is, numbers of 4 bytes, whole messages" + shared,
      emulates ? emulated_tables(measured, width) : full_speed_tables(measured, width));
}

std::string emulated_tables(const std::vector<CollectiveMeasurement>& measured, TableWidth width) {
  std::string text;
  for (std::size_t first = 0; first < measured.size();) {
    const plan::Collective& what = measured[first].predicted.collective;
    text += fmt::format("{}{} of {} among {} (count {}, type uint8, redop {})\n",
                        first == 0 ? "" : "\n", to_text(what.kind), to_text(what.size),
                        report::counted(std::ssize(what.members), "rank"), what.size.count(),
                        operation_of(what.kind));
    Table table{{{"algorithm", Align::left},
                 {"pieces", Align::right, 3},
                 {"n"},
                 {"predicted"},
                 {"measured"},
                 {"95% interval", Align::right, 4},
                 {"diff %"},
                 {"us/hop"},
                 {"over ties", Align::right, 5},
                 {"ties diff %"},
                 {"no credit"},
                 {"us a side", Align::right, 2},
                 {"algbw GB/s", Align::right, 1},
                 {"busbw GB/s", Align::right, 2},
                 {"#wrong"},
                 {own_name(measured[first]) + " here", Align::right, 1}}};
    std::string notes;
    engine::CreditUse credit;
    for (; first < measured.size(); ++first) {
      const CollectiveMeasurement& each = measured[first];
      const plan::Collective& collective = each.predicted.collective;
      if (!is_of_one_table(collective, what) || collective.size != what.size) break;
      const CollectiveRates rates = rates_of(collective, each.summary.median);
      table.add_row(
          {report::algorithm_text(collective), std::to_string(collective.pieces),
           std::to_string(each.summary.n), to_text(each.predicted.duration),
           time_text(each.summary.median), interval_of(each.summary),
           fmt::format("{:+.2f}", each.difference_percent()),
           plan::late_text(each.late_per_message()), over_ties_text(each),
           over_ties_difference(each), without_credit_text(each),
           fmt::format("{:.1f}", 1e-3 * static_cast<double>(each.processor_time_of_side().count())),
           rate_text(rates.algorithm), rate_text(rates.bus), std::to_string(each.checks.wrong()),
           time_of(each.own_out_of_place)});
      notes += beside_text(each);
      credit += each.credit;
    }
    text += table.text(width) + notes + credit_text(credit);
    if (!measured[first - 1].adds_up)
      text += fmt::format(
          "sent {} of {} (--payload): messages were checked, numbers not added up\n",
          to_text(measured[first - 1].largest_sent), to_text(measured[first - 1].largest_message));
  }
  return text;
}

ordered_json collectives_json(const std::vector<CollectiveMeasurement>& measured) {
  ordered_json all = ordered_json::array();
  for (const CollectiveMeasurement& each : measured) {
    const plan::Collective& collective = each.predicted.collective;
    const CollectiveRates rates = rates_of(collective, each.summary.median);
    ordered_json json{{"kind", to_text(collective.kind)},
                      {"algorithm", plan::to_string(collective.algorithm)},
                      {"way", report::algorithm_text(collective)},
                      {"members", collective.members.size()},
                      {"group", collective.members},
                      {"pieces", collective.pieces},
                      {"size_bytes", collective.size.count()},
                      {"messages", each.predicted.messages},
                      {"critical_messages", each.predicted.critical_messages},
                      {"predicted_ns", each.predicted.duration.count()},
                      {"n", each.summary.n},
                      {"median_ns", each.summary.median}};
    json["interval_ns"] =
        each.summary.median_interval
            ? ordered_json{each.summary.median_interval->low, each.summary.median_interval->high}
            : ordered_json{};
    json["difference_percent"] = each.difference_percent();
    const auto late = each.late_per_message();
    json["late_per_message_ns"] = late ? ordered_json(late->count()) : ordered_json{};
    if (each.over_ties)
      json["over_ties"] = {{"low_ns", each.over_ties->low.count()},
                           {"median_ns", each.over_ties->median.count()},
                           {"high_ns", each.over_ties->high.count()},
                           {"draws", each.over_ties->draws},
                           {"difference_percent", each.difference_over_ties_percent()}};
    json["algorithm_bytes_per_second"] = rates.algorithm;
    json["bus_bytes_per_second"] = rates.bus;
    if (!each.without_credit_ns.empty())
      json["difference_without_credit_percent"] = each.difference_without_credit_percent();
    if (!each.without_credit_ns.empty() || each.beside) {
      json["credit"] = credit_json(each.credit);
      json["processor_ns"] = each.processor_time.count();
      json["processor_ns_of_side"] = each.processor_time_of_side().count();
    }
    if (each.beside)
      json["beside"] = {{"schedule", each.beside->schedule},
                        {"alone_ns", each.beside->alone.count()},
                        {"predicted_ns", each.beside->predicted.count()},
                        {"median_ns", each.beside->summary.median},
                        {"difference_percent", each.beside->difference_percent()},
                        {"durations_ns", each.beside->durations_ns}};
    json["adds_up"] = each.adds_up;
    json["wrong"] = each.wrong();
    json["largest_message_bytes"] = each.largest_message.count();
    json["largest_sent_bytes"] = each.largest_sent.count();
    json["durations_ns"] = each.durations_ns;
    json["out_of_place"] = runs_json(each.out_of_place);
    json["in_place"] = runs_json(each.in_place);
    json["own_calls"] = to_string(each.own_by);
    json["own_out_of_place"] = runs_json(each.own_out_of_place);
    json["own_in_place"] = runs_json(each.own_in_place);
    all.push_back(std::move(json));
  }
  return all;
}

}  // namespace longhaul::harness
