#pragma once

#include <string>

namespace longhaul {

/// Text as a cell of a CSV file, quoted where RFC 4180 wants it.
inline std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out{'"'};
  for (const char c : text) out += c == '"' ? std::string{"\"\""} : std::string{c};
  return out + '"';
}

}  // namespace longhaul
