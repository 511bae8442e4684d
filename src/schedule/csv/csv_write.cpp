#include <charconv>

#include "base/error.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/csv/csv_line.hpp"
#include "schedule/validity/checks.hpp"

namespace longhaul::schedule {
namespace {

void append_number(std::string& text, int value) {
  char digits[12];
  const auto [end, _] = std::to_chars(std::begin(digits), std::end(digits), value);
  text.append(digits, end);
}

void check_writable(const Block& block) {
  const bool writable = block.kind <= BlockKind::R && block.chunk >= 0 &&
                        block.chunk < csv::kMostChunks && block.microbatch >= 0 &&
                        block.microbatch < csv::kMostMicrobatches && block.part < block.parts;
  if (writable) return;
  fail(
      "The schedule cannot be written: it has a block of chunk {}, microbatch {}, part {} of {} (a "
      "file holds chunks 0 to {} and microbatches 0 to {}).",
      block.chunk, block.microbatch, block.part, block.parts, csv::kMostChunks - 1,
      csv::kMostMicrobatches - 1);
}

void append_cell(std::string& text, const Block& block) {
  check_writable(block);
  append_number(text, block.chunk);
  text += block.kind == BlockKind::D ? 'I' : *longhaul::to_string(block.kind);
  append_number(text, block.microbatch);
  if (block.parts == 1) return;
  text += '.';
  append_number(text, block.part);
  text += '/';
  append_number(text, block.parts);
}

void append_header(std::string& text, const Schedule& schedule) {
  text += fmt::format(
      "# longhaul schedule 1\n# name = {}\n# devices = {}\n# chunks = {}\n# microbatches = {}\n"
      "# replicas = {}\n# device_of_chunk = {}\n",
      csv::quoted(schedule.name), schedule.devices, schedule.chunks, schedule.microbatches,
      schedule.replicas, fmt::join(numbers(schedule.device_of_chunk.items()), ","));
  if (!schedule.replica_microbatches.empty())
    text +=
        fmt::format("# replica_microbatches = {}\n", fmt::join(schedule.replica_microbatches, ","));
  if (schedule.copies != 1) text += fmt::format("# copies = {}\n", schedule.copies);
  if (schedule.cell != 1) text += fmt::format("# cell = {}\n", schedule.cell);
  if (schedule.recompute_timing == RecomputeTiming::ahead) text += "# recompute = ahead\n";
  for (const LinkOrder& order : schedule.link_orders) {
    text += fmt::format("# link_order {} = ", csv::quoted(order.resource));
    for (const OrderedMessage& message : order.messages) {
      if (&message != &order.messages.front()) text += ',';
      append_number(text, number(message.replica));
      text += ':';
      append_cell(text, message.producer);
    }
    text += '\n';
  }
}

/// Throws where torch.distributed.pipelining has no words for something.
void check_pytorch(const Schedule& schedule) {
  const auto refuse = [](const std::string& what,
                         const char* remedy = "Write the longhaul format.") {
    fail("PyTorch's format cannot hold this schedule ({}). {}", what, remedy);
  };
  if (!schedule.replicas_share_rows()) refuse("its replicas follow different orders");
  if (schedule.copies != 1) {
    refuse(fmt::format("it runs {} copies of the model in one pipeline", schedule.copies),
           "Make it with --placement ud,loop,wave, or write the longhaul format.");
  }
  if (schedule.cell != 1) {
    refuse(fmt::format("its pipelines take turns on the WAN in cells of {}", schedule.cell));
  }
  if (!schedule.link_orders.empty()) refuse("it orders the messages of a link");
  for (std::size_t row = 0; row < schedule.rows.size(); ++row) {
    for (const Block& block : schedule.rows[row]) {
      if (block.kind != BlockKind::R && block.parts == 1) continue;
      refuse(fmt::format("{} has {}, {}", checks::device_text(schedule, row), to_text(block),
                         block.kind == BlockKind::R ? "a recompute" : "part of a split block"));
    }
  }
}

}  // namespace

std::string csv_cell(const Block& block) {
  std::string text;
  append_cell(text, block);
  return text;
}

std::string write_csv(const Schedule& schedule, CsvFormat format) {
  if (const auto wrong = checks::counts_violation(schedule)) {
    fail("The schedule cannot be written. {}", wrong->text);
  }
  std::string text;
  if (format == CsvFormat::pytorch) {
    check_pytorch(schedule);
  } else {
    append_header(text, schedule);
  }
  for (const std::vector<Block>& row : schedule.rows) {
    for (const Block& block : row) {
      if (&block != &row.front()) text += ',';
      append_cell(text, block);
    }
    // A blank line would be no row.
    text += row.empty() ? ",\n" : "\n";
  }
  return text;
}

}  // namespace longhaul::schedule
