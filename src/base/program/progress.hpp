#pragma once

#include <cstdint>
#include <string>

namespace longhaul {

/// One line on stderr, rewritten in place, only when stderr is a terminal; otherwise silent.
class Progress {
public:
  Progress(std::string label, std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows `done` of total, followed by a note.
  void update(std::int64_t done, const std::string& note = {});

private:
  std::string label_;
  std::int64_t total_;
  bool visible_;
};

}  // namespace longhaul
