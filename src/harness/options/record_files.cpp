#include "harness/options/record_files.hpp"

#include <fstream>

#include "base/error.hpp"
#include "trace/hdf5/new_file.hpp"

namespace longhaul::harness {

void require_free(const std::filesystem::path& directory) {
  std::error_code problem;
  if (!std::filesystem::exists(directory, problem)) return;
  if (std::filesystem::is_directory(directory, problem) &&
      std::filesystem::is_empty(directory, problem))
    return;
  fail("{} exists and is not empty (results are never overwritten). Give --out another directory.",
       directory.string());
}

void write_new_file(const std::filesystem::path& file, const std::string& text) {
  std::error_code problem;
  std::filesystem::create_directories(file.parent_path(), problem);
  if (problem)
    fail("cannot make {} ({}). Choose a directory that can be written.",
         file.parent_path().string(), problem.message());
  trace::NewFile target{file};
  std::ofstream out{target.temporary(), std::ios::binary};
  out << text;
  out.close();
  if (!out)
    throw Error{fmt::format("{} cannot be written (disk full, or no permission). Make room or give "
                            "another directory.",
                            file.string()),
                ExitCode::run_failed};
  target.publish();
}

}  // namespace longhaul::harness
