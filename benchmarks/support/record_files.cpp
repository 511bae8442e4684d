#include "support/record_files.hpp"

#include <fstream>

#include "base/error.hpp"

namespace longhaul::bench {

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
  if (std::filesystem::exists(file, problem))
    fail("{} exists (results are never overwritten). Give another directory.", file.string());
  const std::filesystem::path part = file.string() + ".part";
  std::ofstream out{part, std::ios::binary};
  out << text;
  out.close();
  if (!out) {
    std::filesystem::remove(part, problem);
    fail("{} cannot be written (disk full, or no permission). Make room or give another directory.",
         file.string());
  }
  std::filesystem::rename(part, file);
}

}  // namespace longhaul::bench
