#include "base/program/working_line.hpp"

#include <atomic>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace longhaul {
namespace {

constexpr std::size_t kWidth = 78;  // of a line that no terminal wraps

std::atomic<int> bars_shown{0};
std::mutex guard_of_step;
std::string current_step;

std::string step_text() {
  const std::lock_guard lock{guard_of_step};
  return current_step.empty() ? "working" : current_step;
}

}  // namespace

WorkingLine::WorkingLine(std::string name, int terminal, Timing timing)
    : name_{std::move(name)}, terminal_{terminal}, timing_{timing} {
  step("");
  if (isatty(terminal_) == 1) ticker_ = std::thread{[this] { show(); }};
}

WorkingLine::~WorkingLine() {
  if (!ticker_.joinable()) return;
  {
    const std::lock_guard lock{stopping_};
    stop_ = true;
  }
  stopped_.notify_all();
  ticker_.join();
  if (visible_) dprintf(terminal_, "\r\033[K");
}

void WorkingLine::step(std::string text) {
  const std::lock_guard lock{guard_of_step};
  current_step = std::move(text);
}

void WorkingLine::give_way(int bars) { bars_shown += bars; }

void WorkingLine::show() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock{stopping_};
  while (!stopped_.wait_for(lock, timing_.every, [this] { return stop_; })) {
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (passed < timing_.after || bars_shown > 0) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed).count();
    const std::string text = fmt::format("{}: {}", name_, step_text()).substr(0, kWidth - 10);
    dprintf(terminal_, "\r%s ... %lld s\033[K", text.c_str(), static_cast<long long>(seconds));
    visible_ = true;
  }
}

}  // namespace longhaul
