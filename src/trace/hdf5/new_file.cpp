#include "trace/hdf5/new_file.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"

namespace longhaul::trace {
namespace {

constexpr const char* kUnfinishedSuffix = ".tmp";

[[noreturn]] void fail_existing(const std::filesystem::path& file) {
  fail("{} exists (a result is never overwritten). Choose another name or move it away.",
       file.string());
}

/// A directory that takes no files was chosen wrongly; one that is full failed us.
[[noreturn]] void fail_writing(const std::filesystem::path& file, int error) {
  const bool failed_us = error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO;
  throw Error{fmt::format("cannot write {} ({}). Check that its directory exists, is writable and "
                          "has space.",
                          file.string(), std::strerror(error)),
              failed_us ? ExitCode::run_failed : ExitCode::bad_input};
}

PublishProbe& probe() {
  thread_local PublishProbe the_probe;
  return the_probe;
}

/// Creates an empty file under a name that no other process, on any host, is using.
std::filesystem::path create_temporary(const std::filesystem::path& file) {
  static std::atomic<unsigned> count{0};
  for (;;) {
    const std::filesystem::path name =
        file.parent_path() / fmt::format(".{}.{}-{}{}", file.filename().string(), getpid(),
                                         count.fetch_add(1), kUnfinishedSuffix);
    const int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      close(fd);
      return name;
    }
    if (errno != EEXIST) fail_writing(file, errno);
  }
}

/// Renames without ever replacing; 0 or an errno.
int rename_exclusively(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Network file systems know no exclusive rename, but links never replace.
  if (link(from.c_str(), to.c_str()) != 0) return errno;
  unlink(from.c_str());
  return 0;
}

int sync(const std::filesystem::path& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) return errno;
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  return error == EINVAL || error == ENOTSUP || error == EROFS ? 0 : error;
}

}  // namespace

int sync_file(const std::filesystem::path& path) { return sync(path, O_RDONLY); }

void sync_directory_of(const std::filesystem::path& file) {
  const std::filesystem::path directory = file.parent_path();
  (void)sync(directory.empty() ? "." : directory, O_RDONLY | O_DIRECTORY);
}

void set_publish_probe(PublishProbe to_call) { probe() = std::move(to_call); }

NewFile::NewFile(std::filesystem::path file) : file_{std::move(file)} {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(file_, ignored)))
    fail_existing(file_);
  temporary_ = create_temporary(file_);
}

NewFile::~NewFile() {
  if (!published_) unlink(temporary_.c_str());
}

void NewFile::publish() {
  if (probe()) probe()(file_, temporary_);
  if (const int unsynced = sync_file(temporary_); unsynced != 0) fail_writing(file_, unsynced);
  const int error = rename_exclusively(temporary_, file_);
  if (error == EEXIST) fail_existing(file_);
  if (error != 0) fail_writing(file_, error);
  published_ = true;
  sync_directory_of(file_);
}

}  // namespace longhaul::trace
