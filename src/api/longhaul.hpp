#pragma once

// The library's interface for other programs: make, read, check and simulate pipeline schedules.
// It needs no other header than the standard library's, and stays as it is within a major version:
// names may come, none goes. Build with find_package(longhaul) and target longhaul::longhaul
// (docs/install.md).

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__GNUC__)
#define LONGHAUL_API __attribute__((visibility("default")))
#else
#define LONGHAUL_API
#endif

namespace longhaul::api {

/// Version of the library: "1.0.0".
[[nodiscard]] LONGHAUL_API std::string version();

/// The exception of every function here. what() reads "what (why). What to do.", preceded by
/// file:line:column for text that was read.
class LONGHAUL_API Error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// How communication is arranged: receives posted early (decoupled) or where frameworks post them.
enum class Comm : std::uint8_t { decoupled, grouped };

/// Datacenters, links, model, costs and layout of a training job (docs/scenario.md). A value: cheap
/// to copy, never changed.
class LONGHAUL_API Scenario {
public:
  /// Reads a TOML file. `overrides` are "PATH=VALUE" texts: "link.latency_ratio=2".
  [[nodiscard]] static Scenario load(const std::string& file,
                                     const std::vector<std::string>& overrides = {});
  /// The same from a text.
  [[nodiscard]] static Scenario parse(const std::string& toml,
                                      const std::vector<std::string>& overrides = {});

  [[nodiscard]] std::string name() const;
  [[nodiscard]] int stages() const;
  [[nodiscard]] int replicas() const;
  [[nodiscard]] int microbatches() const;
  [[nodiscard]] std::vector<std::string> datacenters() const;
  /// Index into datacenters() of each rank; rank = replica * stages + device, unless the scenario
  /// gives [parallel] tensor or order.
  [[nodiscard]] std::vector<int> placement() const;

  struct Data;
  [[nodiscard]] const Data& data() const { return *data_; }

private:
  explicit Scenario(std::shared_ptr<const Data> data) : data_{std::move(data)} {}
  std::shared_ptr<const Data> data_;
};

/// An order of blocks for each (replica, device), with no times. A value, as Scenario is.
class LONGHAUL_API Schedule {
public:
  /// Reads Longhaul's CSV or PyTorch's (docs/formats.md). `name` is used where the text holds none.
  [[nodiscard]] static Schedule from_csv(const std::string& csv,
                                         const std::string& name = "schedule");

  [[nodiscard]] std::string name() const;
  [[nodiscard]] int devices() const;
  [[nodiscard]] int chunks() const;  ///< of the model: v * devices
  [[nodiscard]] int microbatches() const;
  [[nodiscard]] int replicas() const;
  /// Index: chunk.
  [[nodiscard]] std::vector<int> device_of_chunk() const;
  /// Cells "<chunk><kind><microbatch>[.part/parts]" of a device in their order; kinds F, B, I
  /// (input gradient), W (weight gradient), R (recompute).
  [[nodiscard]] std::vector<std::string> row(int device, int replica = 0) const;
  /// The text that from_csv() reads back without loss.
  [[nodiscard]] std::string csv() const;
  /// The text that torch.distributed.pipelining reads (compute_only). Throws Error, with the
  /// reason, where that format cannot hold the schedule.
  [[nodiscard]] std::string pytorch_csv() const;

  struct Data;
  [[nodiscard]] const Data& data() const { return *data_; }

private:
  friend struct Maker;
  explicit Schedule(std::shared_ptr<const Data> data) : data_{std::move(data)} {}
  std::shared_ptr<const Data> data_;
};

/// Names that make_schedule() takes, in the order of a report.
[[nodiscard]] LONGHAUL_API std::vector<std::string> schedule_names();

/// How a schedule that is looked for (`best`) is looked for.
struct Search {
  double seconds = 1.0;               ///< wall clock; at least 0
  std::optional<std::int64_t> moves;  ///< instead of seconds: repeatable on any machine
  std::uint64_t seed = 1;
  int threads = 0;  ///< 0: one for each core
  /// Comma list of ud, loop, wave, bd, which it keeps to; empty: any. pytorch_csv() holds all of
  /// "ud,loop,wave".
  std::string placement = {};
};

/// Makes a schedule by name: "1f1b", "zbv", "cross-ud", "best", "atlas+NAME", ... Throws Error for
/// an unknown name, and where it is not defined on the scenario or misses a link.
[[nodiscard]] LONGHAUL_API Schedule make_schedule(const std::string& name, const Scenario& scenario,
                                                  Comm comm = Comm::decoupled,
                                                  const Search& search = {});

/// Why a schedule cannot run: the first broken rule of structure (every block once, no order
/// against a dependency, no deadlock). nullopt: it can.
[[nodiscard]] LONGHAUL_API std::optional<std::string> why_invalid(const Schedule& schedule);
/// The same, then its shape and memory on the scenario, and links that it misses.
[[nodiscard]] LONGHAUL_API std::optional<std::string> why_invalid(const Schedule& schedule,
                                                                  const Scenario& scenario,
                                                                  Comm comm = Comm::decoupled);

/// One op of a simulated iteration (docs/trace.md). Times from the start of the iteration.
struct LONGHAUL_API Row {
  int rank = 0;
  std::string lane;     ///< "compute", "send>3", "recv<3", "collective"
  std::string kind;     ///< F B D W R send recv, or a collective: all_gather, ...
  int chunk = -1;       ///< -1: none
  int microbatch = -1;  ///< -1: none
  int peer = -1;        ///< the other rank of a message; -1: none
  std::int64_t size_bytes = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Times of one iteration, by the model of time (docs/metrics.md).
struct LONGHAUL_API Prediction {
  std::int64_t makespan_ns = 0;
  std::int64_t device_span_ns = 0;
  std::int64_t lower_bound_ns = 0;   ///< nothing with this placement and memory ends before
  std::vector<double> bubble_ratio;  ///< of each rank
  std::vector<std::int64_t> peak_activation_bytes;  ///< of each rank
  std::vector<int> over_budget;                     ///< devices
  int wan_crossings_on_critical_path = 0;
  std::vector<Row> rows;  ///< in order of op id
};

/// Exact to the nanosecond, the same on every machine. Throws Error where why_invalid() gives a
/// reason other than memory.
[[nodiscard]] LONGHAUL_API Prediction simulate(const Schedule& schedule, const Scenario& scenario,
                                               Comm comm = Comm::decoupled);

/// Names of the commands of the tool `longhaul`, each of which ask() takes: "advise", "trace
/// summary", ...
[[nodiscard]] LONGHAUL_API std::vector<std::string> commands();

/// The answer of a command.
struct LONGHAUL_API Answer {
  std::string json;  ///< the document that `longhaul COMMAND ... --json` prints (docs/cli.md)
  bool yes = true;   ///< false: the command ends with exit code 1 (a check that failed)
};

/// What a command of the tool answers: ask({"advise", "sites.toml", "--search-moves", "2000"}), its
/// words one by one, without --json. Throws Error where the tool ends with exit code 2 or 3. A
/// command that reads HDF5 files forks, as the tool does. One at a time searches on SIGINT.
[[nodiscard]] LONGHAUL_API Answer ask(const std::vector<std::string>& command);

}  // namespace longhaul::api
