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

/// One side: its runs, and what they are called together.
struct Side {
  std::vector<ComparedRun> runs;
  std::string source;  ///< "runs/one, runs/two"
};

/// Everything that a comparison says: feeds text and JSON.
struct Compared {
  Side a, b;
  double at_least = 0;
  std::vector<Difference> differences;
  std::vector<Comparison> comparisons;
  std::vector<std::string> only_a, only_b;  ///< names without a counterpart
  std::vector<std::string> troubles;

  [[nodiscard]] bool is_measured() const { return a.runs.front().is_measured; }
  [[nodiscard]] bool is_of_runs() const { return a.runs.size() + b.runs.size() > 2; }
};

const NamedSample* find(const ComparedRun& run, const std::string& name) {
  const auto found = std::ranges::find(run.samples, name, &NamedSample::name);
  return found == run.samples.end() ? nullptr : &*found;
}

bool has(const Side& side, const std::string& name) {
  return std::ranges::all_of(side.runs,
                             [&](const auto& run) { return find(run, name) != nullptr; });
}

/// The names that all runs of a side have.
std::vector<std::string> names_of(const Side& side) {
  std::vector<std::string> names;
  for (const NamedSample& sample : side.runs.front().samples)
    if (has(side, sample.name)) names.push_back(sample.name);
  return names;
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

/// A schedule in each run of a side.
std::vector<NamedSample> samples_of(const Side& side, const std::string& name,
                                    std::vector<std::string>& troubles) {
  std::vector<NamedSample> samples;
  for (const ComparedRun& run : side.runs) {
    const NamedSample* sample = find(run, name);
    if (sample == nullptr)
      fail("--schedule: {} holds no schedule \"{}\". {}", run.source, name,
           suggestion(name, names_of(side)));
    require_times(run, *sample);
    if (!sample->trouble.empty())
      troubles.push_back(fmt::format("{} of {}: {}", name, run.source, sample->trouble));
    samples.push_back(*sample);
  }
  return samples;
}

void add(Compared& compared, const std::string& ours, const std::string& theirs) {
  const auto a = samples_of(compared.a, ours, compared.troubles);
  const auto b = samples_of(compared.b, theirs, compared.troubles);
  compared.comparisons.push_back(compare(a, b, compared.is_measured(), compared.at_least));
}

/// --schedule S, or S,T: S of A against T of B.
void add_asked(Compared& compared, const std::string& asked) {
  const std::size_t comma = asked.find(',');
  const std::string ours = asked.substr(0, comma);
  add(compared, ours, comma == std::string::npos ? ours : asked.substr(comma + 1));
}

void add_common(Compared& compared) {
  for (const std::string& name : names_of(compared.a)) {
    if (has(compared.b, name))
      add(compared, name, name);
    else
      compared.only_a.push_back(name);
  }
  for (const std::string& name : names_of(compared.b))
    if (!has(compared.a, name)) compared.only_b.push_back(name);
  if (compared.comparisons.empty())
    fail("{} and {} have no schedule in common ({} and {}). Name one of each: --schedule S,T.",
         compared.a.source, compared.b.source, fmt::join(names_of(compared.a), ", "),
         fmt::join(names_of(compared.b), ", "));
}

Side side_of(const std::vector<std::string>& sources) {
  Side side{{}, fmt::format("{}", fmt::join(sources, ", "))};
  for (const std::string& source : sources) side.runs.push_back(read_compared(source));
  return side;
}

/// Differences between runs of one side: they are to be runs of one thing.
void add_differences_within(const char* name, const Side& side, Compared& compared) {
  for (std::size_t i = 1; i < side.runs.size(); ++i)
    for (const Difference& d : differences_of(side.runs.front(), side.runs[i]))
      compared.troubles.push_back(fmt::format("runs of {} differ: {}: {} {} | {} {}", name, d.what,
                                              side.runs.front().source, d.a, side.runs[i].source,
                                              d.b));
}

Compared compared_of(const Options& options) {
  const Sides sides = sides_of(options.files);
  Compared compared;
  compared.at_least = at_least_of(options.at_least);
  compared.a = side_of(sides.a);
  compared.b = side_of(sides.b);
  add_differences_within("A", compared.a, compared);
  add_differences_within("B", compared.b, compared);
  compared.differences = differences_of(compared.a.runs.front(), compared.b.runs.front());
  if (options.schedule.empty())
    add_common(compared);
  else
    add_asked(compared, options.schedule);
  return compared;
}

std::string method_of(const Compared& compared) {
  return compared.is_of_runs()
             ? "ratio: mean log ratio of the runs' medians, with Student's 95% interval over runs"
             : "ratio: median of all pairs B / A with the 95% interval of Mann and Whitney's test";
}

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

ordered_json to_json(const SideSample& side) {
  ordered_json json = to_json(side.iterations);
  json["runs"] = side.run_medians_ns.size();
  json["run_medians_ns"] = side.run_medians_ns;
  return json;
}

ordered_json to_json(const Comparison& c) {
  ordered_json json{{"schedule_a", c.a.name}, {"schedule_b", c.b.name}};
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
  json["numbers"] = compared.is_measured() ? "measured" : "simulated";
  json["time_scale"] = compared.a.runs.front().time_scale;
  json["method"] = method_of(compared);
  json["holds_for"] = compared.is_of_runs() ? "runs like these" : "these two runs";
  json["at_least_percent"] = 100 * compared.at_least;
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
  // Iterations of several runs are no sample of one thing: the spread between runs is in the ratio.
  const auto interval = [&](const SideSample& side) {
    const auto& found = side.iterations.median_interval;
    return found && side.run_medians_ns.size() == 1
               ? fmt::format("{} - {}", scale.text(found->low), scale.text(found->high))
               : std::string{"-"};
  };
  const auto& ratio = c.ratio.interval;
  return {c.a.name == c.b.name ? c.a.name : c.a.name + " / " + c.b.name,
          scale.text(c.a.iterations.median),
          interval(c.a),
          std::to_string(c.a.iterations.n),
          scale.text(c.b.iterations.median),
          interval(c.b),
          std::to_string(c.b.iterations.n),
          percent(c.ratio.estimate),
          ratio ? fmt::format("{} to {}", percent(ratio->low), percent(ratio->high)) : "-",
          to_string(c.verdict)};
}

std::string side_notes(char name, const SideSample& side, const report::TimeScale& scale) {
  std::string text;
  const auto& medians = side.run_medians_ns;
  if (medians.size() > 1)
    text += fmt::format("{} of {}: medians of {} runs from {} to {} {}\n", side.name, name,
                        medians.size(), scale.text(std::ranges::min(medians)),
                        scale.text(std::ranges::max(medians)), scale.unit());
  if (!side.iterations.outliers.positions.empty())
    text +=
        fmt::format("{} of {}: {} of {} samples beyond Tukey's fences, kept in all numbers\n",
                    side.name, name, side.iterations.outliers.positions.size(), side.iterations.n);
  return text;
}

std::string notes_of(const Compared& compared, const report::TimeScale& scale) {
  std::string text;
  for (const Comparison& c : compared.comparisons) {
    if (!c.reason.empty()) text += fmt::format("{}: {}\n", c.b.name, c.reason);
    text += side_notes('A', c.a, scale) + side_notes('B', c.b, scale);
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

/// The meaning of "B is", and how often it is wrong.
std::string method_text(const Compared& compared) {
  const std::string least =
      compared.at_least > 0
          ? fmt::format(" Differences up to {:g}% do not count.\n", 100 * compared.at_least)
          : std::string{"\n"};
  if (!compared.is_measured()) return "simulated: no noise, any difference counts." + least;
  if (compared.is_of_runs())
    return fmt::format(
               "B to A: mean log ratio of the medians of {} and {} runs, with Student's interval "
               "over runs. Of 20\ncomparisons of equal programs, run in turn, one at most is "
               "expected to differ.",
               compared.a.runs.size(), compared.b.runs.size()) +
           least;
  return "B to A: median of all pairs, interval of Mann and Whitney's test over iterations. It is "
         "about these two runs:\nruns of equal programs differ by more than their iterations tell. "
         "To compare programs, give several runs\na side, taken in turn: A1,A2,A3:B1,B2,B3." +
         least;
}

std::string text_of(const Compared& compared, TableWidth width) {
  double largest = 0;
  for (const Comparison& c : compared.comparisons)
    largest = std::max({largest, c.a.iterations.median, c.b.iterations.median});
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
  return fmt::format("A: {}\nB: {}\n\n", compared.a.source, compared.b.source) + table.text(width) +
         method_text(compared) + notes_of(compared, scale);
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
