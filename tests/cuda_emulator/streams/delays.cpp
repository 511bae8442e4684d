#include <atomic>
#include <cstdlib>
#include <ctime>
#include <random>

#include "streams/stream.hpp"

namespace longhaul::on_host {
namespace {

constexpr unsigned kOneIn = 8;         ///< pieces of work that dawdle
constexpr unsigned kMostNs = 400'000;  ///< how long

unsigned seed() {
  const char* const text = std::getenv("LONGHAUL_ON_HOST_DELAYS");
  return text == nullptr ? 0U : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

}  // namespace

void dawdle() {
  static const unsigned given = seed();
  if (given == 0) return;
  static std::atomic<unsigned> streams{0};
  thread_local std::minstd_rand numbers{given + streams++};
  if (numbers() % kOneIn != 0) return;
  const timespec time{0, static_cast<long>(numbers() % kMostNs)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

}  // namespace longhaul::on_host
