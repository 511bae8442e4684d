#pragma once

#include <filesystem>
#include <vector>

#include <nlohmann/json.hpp>

namespace longhaul::bench {

/// DIR/journal.jsonl while a run goes on: one JSON object a line, added in one write; what a
/// record needs of finished iterations beside their rows, and where each part of the run ran. Its
/// lock says that somebody is at work in the directory; it goes with the process, however it ends.
class Journal {
public:
  /// Makes the file if there is none. Throws Error where another process holds it.
  explicit Journal(const std::filesystem::path& directory);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// What is there; a line that was cut short is left out.
  [[nodiscard]] std::vector<nlohmann::json> read() const;
  /// Throws Error with run_failed where it cannot be written (disk full).
  void add(const nlohmann::json& entry);
  /// The run is complete: nobody needs it any more.
  void remove();

private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace longhaul::bench
