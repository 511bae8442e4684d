#include "base/program/program.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include "base/index.hpp"
#include "base/program/command_words.hpp"
#include "base/program/working_line.hpp"

namespace longhaul {

int run_program(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {  // the system's: no memory, no directory
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return static_cast<int>(ExitCode::run_failed);
  }
}

void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kLargest = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kLargest);
#endif
}

std::optional<ExitCode> read_arguments(Arguments& arguments, int argc, char** argv) {
  try {
    const std::optional<std::string> text = parse_words(arguments, argc, argv);
    if (!text) return std::nullopt;
    fmt::print("{}", *text);
    return ExitCode::fine;
  } catch (const Error& error) {
    fmt::print(stderr, "longhaul: {}\n", error.what());
    return error.code();
  }
}

Progress::Progress(std::string label, std::int64_t total)
    : label_{std::move(label)}, total_{total}, visible_{isatty(STDERR_FILENO) == 1} {
  if (visible_) WorkingLine::give_way(1);
}

Progress::~Progress() {
  if (!visible_) return;
  fmt::print(stderr, "\r\033[K");
  WorkingLine::give_way(-1);
}

void Progress::update(std::int64_t done, const std::string& note) {
  if (!visible_) return;
  constexpr std::int64_t kWidth = 30;
  const auto filled = to_size(total_ > 0 ? kWidth * done / total_ : 0);
  fmt::print(stderr, "\r\033[K{} [{}{}] {}/{} {}", label_, std::string(filled, '#'),
             std::string(kWidth - filled, '.'), done, total_, note);
  std::fflush(stderr);
}

}  // namespace longhaul
