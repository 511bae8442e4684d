#include "planner/solver/solver.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include <unistd.h>

#include "base/error.hpp"
#include "base/program/child_process.hpp"
#include "planner/search/makespan.hpp"
#include "planner/solver/solver_problem.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A directory of its own, gone with the object.
class ScratchDirectory {
public:
  ScratchDirectory() : path_{(fs::temp_directory_path() / "longhaul-solver-XXXXXX").string()} {
    if (mkdtemp(path_.data()) == nullptr)
      fail("cannot make a directory {} (is the disk full?). Set TMPDIR.", path_);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] fs::path file(const char* name) const { return fs::path{path_} / name; }

private:
  std::string path_;
};

fs::path checkout() {
  const char* const told = std::getenv("LONGHAUL_ROOT");
  return told != nullptr && *told != '\0' ? told : LONGHAUL_CHECKOUT;
}

std::string find_python() {
  const char* const told = std::getenv("LONGHAUL_PYTHON");
  if (told != nullptr && *told != '\0') return told;
  const fs::path python = checkout() / ".venv" / "bin" / "python";
  if (!fs::exists(python))
    fail("no Python for the solver ({} is not there). Run scripts/setup, or set LONGHAUL_PYTHON.",
         python.string());
  return python.string();
}

[[noreturn]] void run_failed(const std::string& text) { throw Error{text, ExitCode::run_failed}; }

/// The output of the child; nullopt where it wrote nothing.
std::optional<Json> read_answer(const fs::path& file) {
  std::ifstream in{file};
  if (!in) return std::nullopt;
  Json answer = Json::parse(in, nullptr, false);
  if (answer.is_discarded() || !answer.is_object())
    run_failed("the solver's answer is no JSON (was its program changed?). Restore src/python/.");
  return answer;
}

/// Throws where the child did not end well. Python ends with 1 when it crashes, and so does the
/// program when it finds the problem impossible, which what starts from a schedule is not.
void require_good_end(const ChildEnd& end) {
  if (end.timed_out || end.exit_code == static_cast<int>(ExitCode::fine)) return;
  const std::string said = end.said.empty() ? "it said nothing" : end.said;
  if (end.exit_code == static_cast<int>(ExitCode::bad_input)) throw Error{said};
  run_failed(fmt::format("the solver failed ({}). {}.", said,
                         end.exit_code ? "Report it with the scenario"
                                       : "Was it killed, or out of memory? Run it again"));
}

/// Throws where it failed; a child that ran out of time may have left an answer all the same.
std::optional<Json> ask(const Json& problem, const SolverOptions& options) {
  const ScratchDirectory scratch;
  std::ofstream{scratch.file("problem.json")} << problem;
  const ChildEnd end =
      run_child({find_python(), "-m", "longhaul.solver", scratch.file("problem.json").string(),
                 scratch.file("answer.json").string()},
                {{"PYTHONPATH", (checkout() / "src" / "python").string()}},
                options.time_limit + options.grace);
  auto answer = read_answer(scratch.file("answer.json"));
  if (answer && answer->value("status", Json{}) == "infeasible")
    run_failed(
        "the solver finds no schedule, though it starts from one (its model is wrong). Report it "
        "with the scenario.");
  require_good_end(end);
  if (!answer && !end.timed_out)
    run_failed(fmt::format("the solver ended without an answer ({}). Restore src/python/.",
                           end.said.empty() ? "it said nothing" : end.said));
  return answer;
}

/// The order in the answer, as a schedule. A W that is fused into its D has left the rows.
Schedule read_schedule(const Json& answer, const SolverProblem& problem) {
  std::vector<Block> blocks = problem.blocks;
  for (const Json& i : answer.at("fused")) blocks.at(i.get<std::size_t>()).kind = BlockKind::B;
  Schedule schedule = problem.start;
  for (std::size_t device = 0; device < schedule.rows.size(); ++device) {
    std::vector<Block>& row = schedule.rows[device];
    row.clear();
    for (const Json& i : answer.at("rows").at(device))
      row.push_back(blocks.at(i.get<std::size_t>()));
  }
  if (schedule.replicas > 1) return schedule;
  for (const auto& [resource, producers] : answer.at("link_orders").items()) {
    LinkOrder order = order_named(resource);
    for (const Json& i : producers)
      order.messages.push_back({ReplicaId{0}, blocks.at(i.get<std::size_t>())});
    schedule.link_orders.push_back(std::move(order));
  }
  return schedule;
}

/// The better of the schedule with and without stated orders of shared links.
void choose_link_orders(SolverResult& solved, const Scenario& scenario, Arrangement arrangement) {
  solved.makespan = makespan_of(solved.schedule, scenario, arrangement);
  if (solved.schedule.link_orders.empty()) return;
  Schedule served = solved.schedule;
  served.link_orders.clear();
  const Duration makespan = makespan_of(served, scenario, arrangement);
  if (makespan > solved.makespan) return;
  solved.schedule = std::move(served);
  solved.makespan = makespan;
}

/// The optimum of the model need not be one of the scenario: links serve in an order of their own,
/// replicas differ, communication is grouped, or data parallelism was left out.
bool is_proven(const SolverResult& found, const SolverOptions& options) {
  return options.arrangement == Arrangement::decoupled && found.makespan == found.bound;
}

void take_answer(const Json& answer, const SolverProblem& problem, const Scenario& scenario,
                 const SolverOptions& options, SolverResult& solved) {
  try {
    solved.seconds = answer.at("seconds").get<double>();
    if (problem.exact)
      solved.bound = std::max(solved.bound, Duration{answer.at("bound_ns").get<std::int64_t>()});
    const auto status = answer.at("status").get<std::string>();
    if (status != "optimal" && status != "feasible") return;
    SolverResult found = solved;
    found.schedule = read_schedule(answer, problem);
    if (const auto violation = schedule::first_violation(found.schedule, scenario)) {
      solved.refused = violation->text;
      return;
    }
    choose_link_orders(found, scenario, options.arrangement);
    found.status = status == "optimal" && is_proven(found, options) ? status : "feasible";
    const bool as_good = found.status == "optimal" && found.makespan == solved.makespan;
    if (found.makespan < solved.makespan || as_good) solved = std::move(found);
  } catch (const Json::exception& error) {
    run_failed(fmt::format("the solver's answer lacks something ({}). Restore src/python/.",
                           error.what()));
  } catch (const std::out_of_range& error) {
    run_failed("the solver's answer names a block that there is not. Restore src/python/.");
  }
}

std::string class_of(schedule::Placement placement, const SolverOptions& options) {
  return fmt::format("{} placement, whole blocks, D and W apart{}{}",
                     schedule::to_string(placement), options.fuse ? " or one B" : "",
                     options.microbatch_order ? ", microbatches in order" : "");
}

}  // namespace

SolverResult solve(schedule::Placement placement, const Scenario& scenario,
                   const Schedule& warm_start, const SolverOptions& options) {
  const SolverProblem problem = make_problem(scenario, warm_start, options);
  SolverResult solved;
  solved.schedule = warm_start;
  solved.makespan = makespan_of(warm_start, scenario, options.arrangement);
  solved.bound = Duration{problem.json.at("lower_bound_ns").get<std::int64_t>()};
  solved.holds_for = class_of(placement, options);
  solved.status = "warm start";
  if (const auto answer = ask(problem.json, options))
    take_answer(*answer, problem, scenario, options, solved);
  solved.schedule.name = fmt::format("cross-{}-opt", schedule::to_string(placement));
  return solved;
}

}  // namespace longhaul::planner
