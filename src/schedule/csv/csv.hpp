#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "schedule/schedule.hpp"

namespace longhaul::schedule {

enum class CsvFormat { longhaul, pytorch };

/// One row per device, cells `<chunk><kind><microbatch>[.part/parts]`, kinds F B I(=D) W R. Comment
/// lines (#) hold what a row cannot: version, name, devices, replicas, copies, link orders.
/// `pytorch` writes what torch.distributed.pipelining reads (compute_only: F I B W) and throws
/// Error with the reason where it cannot (R, parts, copies, link orders, replicas that differ).
/// Both throw for a broken shape and for numbers that no file may name (csv_line.hpp).
[[nodiscard]] std::string write_csv(const Schedule& schedule,
                                    CsvFormat format = CsvFormat::longhaul);

/// One cell of the longhaul format: "3I12", "0W1.1/4". Throws Error where no file may name it.
[[nodiscard]] std::string csv_cell(const Block& block);

/// Reads both formats back: read_csv(write_csv(s)) == s for the longhaul format. Throws Error
/// "source:line:column: ...". `name` is used where the file holds none.
[[nodiscard]] Schedule read_csv(std::string_view text, const std::string& source,
                                const std::string& name);
/// The same of a file, which is named for itself where it holds no name.
[[nodiscard]] Schedule read_schedule_file(const std::filesystem::path& file);

}  // namespace longhaul::schedule
