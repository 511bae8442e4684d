#include "engine/links/shared_mutex.hpp"

#include <cerrno>
#include <ctime>
#include <system_error>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace longhaul::engine {
namespace {

constexpr int kPatienceSeconds = 10;  // it is held for a microsecond

/// The thread sanitizer of g++ 12 does not know pthread_mutex_clocklock: it is told what is locked.
void tell_locked([[maybe_unused]] pthread_mutex_t& mutex) {
#if defined(__SANITIZE_THREAD__)
  __tsan_mutex_pre_lock(&mutex, 0);
  __tsan_mutex_post_lock(&mutex, 0, 0);
#endif
}

[[noreturn]] void fail_to_lock(int result) {
  if (result == ETIMEDOUT)
    throw LinkTableError{
        fmt::format("the table of shared links has been locked for {} s (a rank was stopped "
                    "while it held the lock). Start the run again.",
                    kPatienceSeconds)};
  if (result == EOWNERDEAD || result == ENOTRECOVERABLE)
    throw LinkTableError{
        "the table of shared links cannot be trusted (a rank died while it changed it). Start "
        "the run again."};
  throw LinkTableError{
      fmt::format("the table of shared links cannot be locked ({}). Start the run again.",
                  std::generic_category().message(result))};
}

}  // namespace

void SharedMutex::make() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

SharedLock::SharedLock(SharedMutex& mutex) : mutex_{mutex.mutex} {
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += kPatienceSeconds;
  const int result = pthread_mutex_clocklock(&mutex_, CLOCK_MONOTONIC, &until);
  // Not made consistent before it is let go: no one gets it again.
  if (result == EOWNERDEAD) pthread_mutex_unlock(&mutex_);
  if (result != 0) fail_to_lock(result);
  tell_locked(mutex_);
}

}  // namespace longhaul::engine
