#pragma once

#include <string>

#include <pthread.h>

#include "base/error.hpp"

namespace longhaul::engine {

/// A table that ranks share cannot be used any more: a rank died or was stopped while it changed
/// it.
class LinkTableError : public Error {
public:
  explicit LinkTableError(const std::string& what) : Error{what, ExitCode::run_failed} {}
};

/// Guards a table in memory that ranks share, and lies in that memory. Robust: a rank that is
/// killed while it holds the lock does not leave the others hanging. They do not go on either, for
/// it may have been in the middle of a change.
struct SharedMutex {
  pthread_mutex_t mutex;
  /// By one of those who share it, before the others use it.
  void make();
};

/// Throws LinkTableError where the lock cannot be had.
class SharedLock {
public:
  explicit SharedLock(SharedMutex& mutex);
  ~SharedLock() { pthread_mutex_unlock(&mutex_); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

private:
  pthread_mutex_t& mutex_;
};

}  // namespace longhaul::engine
