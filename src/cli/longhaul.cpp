#include "cli/longhaul.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/program/working_line.hpp"
#include "cli/child/in_child.hpp"
#include "cli/parse/parser.hpp"

namespace longhaul::cli {
namespace {

namespace fs = std::filesystem;

/// Those of a command's files that the HDF5 library would read.
struct ForeignFiles {
  std::vector<std::string> names;
  std::uint64_t bytes = 0;
};

/// HDF5 looks for its signature at 0, and then at every power of two from 512 on.
bool is_hdf5(const fs::path& file) {
  constexpr std::string_view kSignature{"\x89HDF\r\n\x1a\n", 8};
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return false;
  const std::uintmax_t size = fs::file_size(file, error);
  std::ifstream in{file, std::ios::binary};
  std::array<char, kSignature.size()> read{};
  for (std::uintmax_t at = 0; !error && at + read.size() <= size; at = at == 0 ? 512 : 2 * at) {
    in.seekg(static_cast<std::streamoff>(at));
    if (!in.read(read.data(), read.size())) return false;
    if (std::string_view{read.data(), read.size()} == kSignature) return true;
  }
  return false;
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;
}

std::uint64_t bytes_inside(const fs::path& directory) {
  std::error_code error;
  std::uint64_t bytes = 0;
  fs::directory_iterator entries{directory, error};
  for (; !error && entries != fs::directory_iterator{}; entries.increment(error)) {
    if (entries->path().extension() == ".h5") bytes += size_of(entries->path());
  }
  return bytes;
}

/// HDF5 files by their content, whatever their names, and directories (of runs) with the HDF5 files
/// directly inside.
ForeignFiles foreign_files(const std::vector<std::string>& files) {
  ForeignFiles foreign;
  for (const std::string& file : files) {
    std::error_code error;
    const bool is_directory = fs::is_directory(file, error);
    if (!is_directory && !is_hdf5(file)) continue;
    foreign.names.push_back(file);
    foreign.bytes += is_directory ? bytes_inside(file) : size_of(file);
  }
  return foreign;
}

/// Whatever reads HDF5 files does so in a child process, for they may come from anyone.
Answer answer_of(std::span<const std::string> arguments) {
  const Request request = read_command_line(arguments);
  if (!request.command) return {request.text, ExitCode::fine};
  if (arguments.front() == "watch") return request.command(request.options);
  const auto answer = [&] {
    const WorkingLine line{fmt::format("longhaul {}", arguments.front())};
    return request.command(request.options);
  };
  const ForeignFiles foreign = foreign_files(request.options.files);
  if (foreign.names.empty()) return answer();
  return in_child(fmt::format("{}", fmt::join(foreign.names, ", ")), limits_for(foreign.bytes),
                  answer);
}

/// Names in files of strangers may hold what a terminal obeys: it is shown as '?'.
std::string harmless(std::string text) {
  for (char& c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F) c = '?';
  return text;
}

/// A pipe whose reader has seen enough ends the program quietly; a full disk does not.
void print(const std::string& text, std::ostream& out) {
  errno = 0;
  out << text << std::flush;
  if (out || errno == EPIPE) return;
  throw Error{fmt::format("the result could not be printed ({}). Check where stdout goes.",
                          std::strerror(errno)),
              ExitCode::run_failed};
}

}  // namespace

std::vector<std::string> command_names() {
  Options options;
  return Parser{options}.command_names();
}

int run_longhaul(std::span<const std::string> arguments, std::ostream& out, std::ostream& err) {
  const auto report = [&](const char* text, ExitCode code) {
    err << "longhaul: " << harmless(text) << std::endl;
    return static_cast<int>(code);
  };
  try {
    Answer answer = answer_of(arguments);
    print(harmless(std::move(answer.text)), out);
    return static_cast<int>(answer.code);
  } catch (const Error& error) {
    return report(error.what(), error.code());
  } catch (const std::bad_alloc&) {
    return report("out of memory (the plan is too large for this machine). Make it smaller.",
                  ExitCode::run_failed);
  } catch (const std::exception& error) {
    return report(error.what(), ExitCode::run_failed);
  }
}

}  // namespace longhaul::cli
