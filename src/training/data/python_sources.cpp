#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/program/child_process.hpp"
#include "training/data/data_kinds.hpp"

/// What a Python has at hand, read by a child process.
namespace longhaul::training {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Duration kPatience = 300s;  ///< a library on a slow network file system
constexpr int kNoPackage = 3;         ///< exit code of kDigits

/// Version, line end, sources. Sorted by bytes, which no locale changes.
constexpr const char* kSources = R"(
import os, platform, sys, sysconfig
root = os.fsencode(sysconfig.get_paths()["stdlib"])
left_out = {b"test", b"tests", b"site-packages", b"dist-packages", b"__pycache__"}
paths = []
for folder, folders, files in os.walk(root):
    folders[:] = [each for each in folders if each not in left_out]
    paths += [os.path.join(folder, each) for each in files if each.endswith(b".py")]
left = 10_000_000
out = sys.stdout.buffer
out.write(platform.python_version().encode() + b"\n")
for path in sorted(paths, key=lambda path: os.path.relpath(path, root)):
    if left and not os.path.islink(path):
        with open(path, "rb") as source:
            left -= out.write(source.read(left))
)";

/// Without an import of the package, which takes seconds.
constexpr const char* kDigits = R"(
import gzip, importlib.util, os, shutil, sys
package = importlib.util.find_spec("sklearn")
if package is None or not package.submodule_search_locations:
    sys.exit(3)
path = os.path.join(package.submodule_search_locations[0], "datasets", "data", "digits.csv.gz")
with gzip.open(path, "rb") as table:
    shutil.copyfileobj(table, sys.stdout.buffer)
)";

fs::path own_checkout() {
  const char* const told = std::getenv("LONGHAUL_ROOT");
  return told != nullptr && *told != '\0' ? told : LONGHAUL_CHECKOUT;
}

std::string python_of_data() {
  const char* const told = std::getenv("LONGHAUL_PYTHON");
  if (told != nullptr && *told != '\0') return told;
  const fs::path own = own_checkout() / ".venv" / "bin" / "python";
  std::error_code ignored;
  return fs::exists(own, ignored) ? own.string() : "python3";
}

/// Runs the program; fails where it did not end well, but for `expected`.
ChildEnd run_python(const std::string& python, const char* program, std::string_view purpose,
                    int expected) {
  ChildEnd end = run_child({python, "-c", program}, {}, kPatience, ChildOutput::keep);
  if (end.exit_code == 0 || end.exit_code == expected) return end;
  const std::string why = end.timed_out      ? fmt::format("after {} s", kPatience / 1s)
                          : end.said.empty() ? "it said nothing"
                                             : end.said.substr(end.said.rfind('\n') + 1);
  fail("{} could not read {} ({}). Set LONGHAUL_PYTHON to one that can, or name a file.", python,
       purpose, why);
}

}  // namespace

PythonText python_sources() {
  const std::string python = python_of_data();
  std::string output = run_python(python, kSources, "its library", 0).output;
  const std::size_t end = output.find('\n');
  if (end == std::string::npos || end + 1 == output.size())
    fail("{} has no library of sources (text:python reads it). Name a text: text:PATH.", python);
  return {output.substr(0, end), output.substr(end + 1)};
}

std::string digits_of_scikit_learn() {
  const std::string python = python_of_data();
  ChildEnd end = run_python(python, kDigits, "the digits of scikit-learn", kNoPackage);
  if (end.exit_code == kNoPackage)
    fail(
        "{} has no scikit-learn (digits are among its files). Run '{} -m pip install "
        "scikit-learn', or give a table: digits:PATH.",
        python, python);
  return std::move(end.output);
}

}  // namespace longhaul::training
