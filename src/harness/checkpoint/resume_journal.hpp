#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

#include "harness/session/schedule_session.hpp"

namespace longhaul::harness {

/// DIR/journal.jsonl while a run goes on: one JSON object a line, added in one write; the facts of
/// finished iterations that a record needs in addition to their rows, and the hosts that each part
/// of the run was on. Its lock says that a process works in the directory; it ends with the
/// process, however that ends.
class Journal {
public:
  /// Makes the file if there is none. Throws Error where another process holds it.
  explicit Journal(const std::filesystem::path& directory);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// The entries so far; a line that was cut short is left out.
  [[nodiscard]] std::vector<nlohmann::json> read() const;
  /// On the disk when it returns. Throws Error with run_failed where that cannot be (disk full).
  void add(const nlohmann::json& entry);
  /// Removes the file: the run is complete, and no later run needs it.
  void remove();

private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

/// An entry of the journal for what the checks of all ranks said of an iteration.
[[nodiscard]] nlohmann::json sums_entry(int position, int iteration,
                                        const engine::IterationResult& sums);
/// The same for the end of a schedule: messages left over, and the first wrong ones by name.
[[nodiscard]] nlohmann::json end_entry(int position, const PipelineMeasurement& measurement);

/// Results of the finished iterations of each schedule: those that follow each other from 0 on,
/// with all their rows in `measured` and their checks in the journal. Where the journal lacks its
/// beginning (the entry of a part, the checks of a warm-up) there are none.
[[nodiscard]] std::vector<EarlierIterations> read_earlier(
    const Timeline& measured, const PipelineInput& input,
    const std::vector<nlohmann::json>& journal);

}  // namespace longhaul::harness
