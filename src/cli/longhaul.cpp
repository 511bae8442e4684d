#include "cli/longhaul.hpp"

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <ostream>
#include <utility>

#include "cli/child/in_child.hpp"
#include "cli/foreign_files.hpp"
#include "cli/parse/command_line.hpp"

namespace longhaul {
namespace {

/// Whatever reads HDF5 files does so in a child process, for they may come from anyone.
Answer answer_of(std::span<const std::string> arguments) {
  const Request request = read_command_line(arguments);
  if (!request.command) return {request.text, ExitCode::fine};
  const ForeignFiles foreign = foreign_files(request.options.files);
  if (foreign.names.empty()) return request.command(request.options);
  return in_child(fmt::format("{}", fmt::join(foreign.names, ", ")), limits_for(foreign.bytes),
                  [&] { return request.command(request.options); });
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

}  // namespace longhaul
