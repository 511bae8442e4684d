#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/suggest.hpp"
#include "base/table.hpp"
#include "cli/command/commands.hpp"
#include "cli/compare/comparison.hpp"
#include "report/record.hpp"
#include "report/record_file.hpp"

namespace longhaul::cli {
namespace {

using nlohmann::ordered_json;

/// Everything that a comparison says: feeds text and JSON.
struct Compared {
  ComparedRun a, b;
  std::vector<Difference> differences;
  std::vector<Comparison> comparisons;
  std::vector<std::string> only_a, only_b;  ///< names without a counterpart
  std::vector<std::string> troubles;
};

std::vector<std::string> names_of(const ComparedRun& run) {
  std::vector<std::string> names;
  for (const NamedSample& sample : run.samples) names.push_back(sample.name);
  return names;
}

const NamedSample* find(const ComparedRun& run, const std::string& name) {
  const auto found = std::ranges::find(run.samples, name, &NamedSample::name);
  return found == run.samples.end() ? nullptr : &*found;
}

const NamedSample& named(const ComparedRun& run, const std::string& name) {
  const NamedSample* sample = find(run, name);
  if (sample == nullptr)
    fail("--schedule: {} holds no schedule \"{}\". {}", run.source, name,
         suggestion(name, names_of(run)));
  return *sample;
}

/// Ratios of anything else mean nothing; no run takes 292 years.
void require_times(const ComparedRun& run, const NamedSample& sample) {
  constexpr double kMost = 9.2e18;
  if (sample.times_ns.empty())
    fail("{} of {} has no values to compare (did no iteration end?). Name another --schedule.",
         sample.name, run.source);
  for (const double time : sample.times_ns)
    if (!(time > 0 && time <= kMost))
      fail("{} of {} has a time of {} ns (not positive, or above 292 years). Measure it again.",
           sample.name, run.source, time);
}

void add(Compared& compared, const NamedSample& a, const NamedSample& b) {
  require_times(compared.a, a);
  require_times(compared.b, b);
  compared.comparisons.push_back(compare(a, b, compared.a.is_measured));
  for (const auto& [run, sample] : {std::pair{&compared.a, &a}, {&compared.b, &b}})
    if (!sample->trouble.empty())
      compared.troubles.push_back(
          fmt::format("{} of {}: {}", sample->name, run->source, sample->trouble));
}

/// --schedule S, or S,T: S of A against T of B.
void add_asked(Compared& compared, const std::string& asked) {
  const std::size_t comma = asked.find(',');
  const std::string ours = asked.substr(0, comma);
  const std::string theirs = comma == std::string::npos ? ours : asked.substr(comma + 1);
  add(compared, named(compared.a, ours), named(compared.b, theirs));
}

void add_common(Compared& compared) {
  for (const NamedSample& sample : compared.a.samples) {
    if (const NamedSample* other = find(compared.b, sample.name))
      add(compared, sample, *other);
    else
      compared.only_a.push_back(sample.name);
  }
  for (const NamedSample& sample : compared.b.samples)
    if (find(compared.a, sample.name) == nullptr) compared.only_b.push_back(sample.name);
  if (compared.comparisons.empty())
    fail("{} and {} have no schedule in common ({} and {}). Name one of each: --schedule S,T.",
         compared.a.source, compared.b.source, fmt::join(names_of(compared.a), ", "),
         fmt::join(names_of(compared.b), ", "));
}

Compared compared_of(const Options& options) {
  Compared compared;
  compared.a = read_compared(options.files[0]);
  compared.b = read_compared(options.files[1]);
  compared.differences = differences_of(compared.a, compared.b);
  if (options.schedule.empty())
    add_common(compared);
  else
    add_asked(compared, options.schedule);
  return compared;
}

constexpr const char* kMethod =
    "ratio: median of all pairs B / A with the 95% interval of Mann and Whitney's test";

ordered_json to_json(const SampleSummary& s) {
  const auto limit = [&](double Interval::*end) {
    return s.median_interval ? ordered_json((*s.median_interval).*end) : ordered_json(nullptr);
  };
  return {{"n", s.n},
          {"median_ns", s.median},
          {"median_low_ns", limit(&Interval::low)},
          {"median_high_ns", limit(&Interval::high)},
          {"outliers", s.outliers.positions.size()}};
}

ordered_json to_json(const Comparison& c) {
  ordered_json json{{"schedule_a", c.a_name}, {"schedule_b", c.b_name}};
  json["a"] = to_json(c.a);
  json["b"] = to_json(c.b);
  json["ratio"] = c.ratio.estimate;
  json["ratio_low"] = c.ratio.interval ? ordered_json(c.ratio.interval->low) : nullptr;
  json["ratio_high"] = c.ratio.interval ? ordered_json(c.ratio.interval->high) : nullptr;
  json["b_is"] = to_string(c.verdict);
  if (!c.reason.empty()) json["reason"] = c.reason;
  return json;
}

std::string json_text_of(const Compared& compared, const Options& options, bool expected) {
  ordered_json json = report::record_header();
  json["a"] = compared.a.source;
  json["b"] = compared.b.source;
  json["numbers"] = compared.a.is_measured ? "measured" : "simulated";
  json["time_scale"] = compared.a.time_scale;
  json["method"] = kMethod;
  json["outlier_rule"] = kOutlierRule;
  json["differences"] = ordered_json::array();
  for (const Difference& d : compared.differences)
    json["differences"].push_back({{"what", d.what}, {"a", d.a}, {"b", d.b}});
  json["troubles"] = compared.troubles;
  json["only_in_a"] = compared.only_a;
  json["only_in_b"] = compared.only_b;
  json["comparisons"] = ordered_json::array();
  for (const Comparison& c : compared.comparisons) json["comparisons"].push_back(to_json(c));
  if (!options.expect.empty()) {
    json["expected"] = options.expect;
    json["holds"] = expected;
  }
  return report::json_text(json);
}

std::string percent(double ratio) { return fmt::format("{:+.2f}", 100 * (ratio - 1)); }

std::vector<std::string> cells_of(const Comparison& c, const report::TimeScale& scale) {
  const auto interval = [&](const SampleSummary& s) {
    return s.median_interval ? fmt::format("{} - {}", scale.text(s.median_interval->low),
                                           scale.text(s.median_interval->high))
                             : std::string{"-"};
  };
  const auto& ratio = c.ratio.interval;
  return {c.a_name == c.b_name ? c.a_name : c.a_name + " / " + c.b_name,
          scale.text(c.a.median),
          interval(c.a),
          std::to_string(c.a.n),
          scale.text(c.b.median),
          interval(c.b),
          std::to_string(c.b.n),
          percent(c.ratio.estimate),
          ratio ? fmt::format("{} to {}", percent(ratio->low), percent(ratio->high)) : "-",
          to_string(c.verdict)};
}

std::string notes_of(const Compared& compared) {
  std::string text;
  for (const Comparison& c : compared.comparisons) {
    if (!c.reason.empty()) text += fmt::format("{}: {}\n", c.b_name, c.reason);
    for (const auto& [side, s] : {std::pair{'A', &c.a}, {'B', &c.b}})
      if (!s->outliers.positions.empty())
        text += fmt::format(
            "{} of {}: {} of {} samples beyond Tukey's fences, kept in all numbers\n",
            side == 'A' ? c.a_name : c.b_name, side, s->outliers.positions.size(), s->n);
  }
  for (const std::string& trouble : compared.troubles) text += fmt::format("! {}\n", trouble);
  for (const Difference& d : compared.differences)
    text += fmt::format("! differs: {}: A {} | B {}\n", d.what, d.a, d.b);
  if (!compared.only_a.empty())
    text += fmt::format("only in A: {}\n", fmt::join(compared.only_a, ", "));
  if (!compared.only_b.empty())
    text += fmt::format("only in B: {}\n", fmt::join(compared.only_b, ", "));
  return text;
}

std::string text_of(const Compared& compared, TableWidth width) {
  double largest = 0;
  for (const Comparison& c : compared.comparisons)
    largest = std::max({largest, c.a.median, c.b.median});
  const report::TimeScale scale{largest};
  Table table{{{"schedule", Align::left},
               {fmt::format("A median [{}]", scale.unit())},
               {"95% CI"},
               {"n"},
               {"B median"},
               {"95% CI"},
               {"n"},
               {"B to A [%]"},
               {"95% CI"},
               {"B is", Align::left}}};
  for (const Comparison& c : compared.comparisons) table.add_row(cells_of(c, scale));
  const std::string method =
      compared.a.is_measured
          ? "B to A: median of all pairs, interval of Mann and Whitney's test. Of 20 comparisons "
            "of equal runs one is expected to differ.\n"
          : "simulated: no noise, any difference counts\n";
  return fmt::format("A: {}\nB: {}\n\n", compared.a.source, compared.b.source) + table.text(width) +
         method + notes_of(compared);
}

}  // namespace

Answer compare_command(const Options& options) {
  if (!options.expect.empty()) (void)holds(options.expect, Verdict::faster);  // is it a word?
  const Compared compared = compared_of(options);
  const bool expected =
      options.expect.empty() || std::ranges::all_of(compared.comparisons, [&](const Comparison& c) {
        return holds(options.expect, c.verdict);
      });
  std::string text = options.json ? json_text_of(compared, options, expected)
                                  : text_of(compared, table_width(options));
  if (!expected && !options.json) text += fmt::format("expected B to be {}: no\n", options.expect);
  return {std::move(text), expected ? ExitCode::fine : ExitCode::answer_is_no};
}

}  // namespace longhaul::cli
