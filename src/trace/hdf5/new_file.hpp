#pragma once

#include <filesystem>
#include <functional>

namespace longhaul::trace {

/// For tests of the files of a process that fails while it writes: called with the final and the
/// temporary name before a file gets the former.
using PublishProbe =
    std::function<void(const std::filesystem::path& file, const std::filesystem::path& temporary)>;
/// Sets the probe of this thread.
void set_publish_probe(PublishProbe probe);

/// Puts the content at `path` on the disk (fsync); 0 or an errno. A file system that cannot be told
/// to (pipes, some of networks) is no failure.
[[nodiscard]] int sync_file(const std::filesystem::path& path);
/// The name of a file is an entry of its directory: puts that on the disk, where it may be read.
void sync_directory_of(const std::filesystem::path& file);

/// A file in the making: it lies under a temporary name in the same directory until publish(), and
/// is removed if that never happens (a killed process leaves ".<name>.<id>.tmp").
class NewFile {
public:
  /// Throws Error if `file` exists or its directory takes no files.
  explicit NewFile(std::filesystem::path file);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  [[nodiscard]] const std::filesystem::path& temporary() const { return temporary_; }
  /// Gives the file its name at once; throws Error if another process took the name meanwhile. It
  /// is on the disk then (fsync), content before name: a machine that fails leaves no empty file.
  void publish();

private:
  std::filesystem::path file_, temporary_;
  bool published_ = false;
};

}  // namespace longhaul::trace
