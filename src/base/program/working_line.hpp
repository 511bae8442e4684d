#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include <unistd.h>

namespace longhaul {

/// On a terminal what a command is at, and for how long, once it has taken more than 2 s: one line,
/// rewritten in place, which goes when the command ends. Elsewhere nothing, and no thread. One at a
/// time.
///
///     const WorkingLine line{"longhaul layers"};
///     WorkingLine::step("division 3");  // longhaul layers: division 3 ... 12 s
class WorkingLine {
public:
  struct Timing {
    std::chrono::milliseconds after{2000};
    std::chrono::milliseconds every{500};
  };
  explicit WorkingLine(std::string name, int terminal = STDERR_FILENO)
      : WorkingLine{std::move(name), terminal, Timing{}} {}
  WorkingLine(std::string name, int terminal, Timing timing);
  ~WorkingLine();
  WorkingLine(const WorkingLine&) = delete;
  WorkingLine& operator=(const WorkingLine&) = delete;

  /// The work from now on. From any thread; without a line nothing.
  static void step(std::string text);
  /// While a Progress shows its bar, the line is away: +1 and -1.
  static void give_way(int bars);

private:
  void show();

  std::string name_;
  int terminal_;
  Timing timing_;
  std::mutex stopping_;
  std::condition_variable stopped_;
  bool stop_ = false;
  bool visible_ = false;
  std::thread ticker_;  ///< not running where there is no terminal
};

}  // namespace longhaul
