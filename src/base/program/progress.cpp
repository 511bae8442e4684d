#include "base/program/progress.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/index.hpp"

namespace longhaul {

Progress::Progress(std::string label, std::int64_t total)
    : label_{std::move(label)}, total_{total}, visible_{isatty(STDERR_FILENO) == 1} {}

Progress::~Progress() {
  if (visible_) fmt::print(stderr, "\r\033[K");
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
