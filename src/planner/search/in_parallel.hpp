#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/index.hpp"

namespace longhaul::planner {

/// Calls work(0) to work(count - 1) on so many threads (0: all cores), in any order. The first
/// exception is thrown again when all threads have stopped.
template <typename Work>
void in_parallel(std::size_t count, int threads, Work&& work) {
  const std::size_t wanted =
      threads > 0 ? to_size(threads) : std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex failing;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock{failing};
        if (!failure) failure = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min(wanted, count); ++t) others.emplace_back(take);
    take();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace longhaul::planner
