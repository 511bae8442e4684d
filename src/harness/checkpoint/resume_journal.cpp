#include "harness/checkpoint/resume_journal.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"

namespace longhaul::harness {
namespace {

constexpr const char* kName = "journal.jsonl";

/// Locks the file; false where another process holds it. Where the file system knows no locks,
/// files that are created exclusively still keep two runs from mixing.
bool lock(int descriptor) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(descriptor, F_OFD_SETLK, &whole) == 0) return true;
  return errno != EAGAIN && errno != EACCES;
}

[[noreturn]] void fail_writing(const std::filesystem::path& file) {
  throw Error{fmt::format("cannot write {} ({}). Make room, and run again with --resume.",
                          file.string(), std::strerror(errno)),
              ExitCode::run_failed};
}

}  // namespace

Journal::Journal(const std::filesystem::path& directory) : file_{directory / kName} {
  descriptor_ = open(file_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0)
    fail("cannot open {} ({}). Give --out a directory that can be written.", file_.string(),
         std::strerror(errno));
  if (lock(descriptor_)) return;
  close(descriptor_);
  fail(
      "another run is going on in {} (results are never mixed). Wait for it, or give --out another "
      "directory.",
      directory.string());
}

Journal::~Journal() { close(descriptor_); }

std::vector<nlohmann::json> Journal::read() const {
  std::vector<nlohmann::json> entries;
  std::ifstream stream{file_};
  for (std::string line; std::getline(stream, line);) {
    nlohmann::json entry = nlohmann::json::parse(line, nullptr, false);
    if (entry.is_object()) entries.push_back(std::move(entry));
  }
  return entries;
}

void Journal::add(const nlohmann::json& entry) {
  // In front, too: the line before may have been cut short.
  const std::string line = fmt::format("\n{}\n", entry.dump());
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_writing(file_);
    written += static_cast<std::size_t>(count);
  }
}

void Journal::remove() { unlink(file_.c_str()); }

}  // namespace longhaul::harness
