#include "trace/file/trace_reader.hpp"

#include "base/error.hpp"
#include "trace/file/run_info.hpp"
#include "trace/hdf5/hdf5_file.hpp"
#include "trace/validate/check_rows.hpp"

namespace longhaul::hdf5 {

TraceReader::TraceReader(const std::filesystem::path& file, Diagnostics& findings) {
  try {
    file_.emplace(open_file(file));
    const std::uint64_t file_bytes = size_of_file(file);
    info_ = read_run_info(file_->get(), file_bytes, findings);
    measured_.emplace(file_->get(), "measured", file_bytes, findings);
    predicted_.emplace(file_->get(), "predicted", file_bytes, findings);
  } catch (const Error& error) {
    findings.add("file", fmt::format("it cannot be opened ({}).", error.what()));
  }
}

void check_groups(const TraceReader& reader, Diagnostics& findings) {
  try {
    Diagnostics of_rows;
    RowsInFile predicted{reader.predicted()};
    check_rows(predicted, "predicted", 0, of_rows);
    RowsInFile measured{reader.measured()};
    check_rows(measured, "measured", kMeasuredSlackNs, of_rows);
    findings.append(of_rows);
  } catch (const Error&) {
    reader.measured().find_damage(findings);
    reader.predicted().find_damage(findings);
    if (findings.empty()) throw;  // it is not the file
  }
}

void require_none(const std::filesystem::path& file, const Diagnostics& findings) {
  if (findings.empty()) return;
  const std::vector<std::string> texts = findings.texts();
  const std::string more =
      texts.size() > 1 ? fmt::format(" And {} more findings.", texts.size() - 1) : "";
  fail("{} is no valid trace: {}{} See all with `longhaul check`.", file.string(), texts.front(),
       more);
}

}  // namespace longhaul::hdf5
