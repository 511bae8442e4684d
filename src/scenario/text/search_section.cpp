#include "scenario/text/search_section.hpp"

#include "scenario/text/fields.hpp"

namespace longhaul::scenario {
namespace {

/// A list as an option takes it: "1,2,4".
std::string read_words(const Field& field) {
  if (field.node->kind == ConfigNode::Kind::text) return read_text(field);
  if (field.node->kind != ConfigNode::Kind::list) return to_text(*field.node);
  std::string words;
  for (const Field& item : elements(field)) words += (words.empty() ? "" : ",") + read_words(item);
  return words;
}

bool has_key(const ConfigNode& table, const char* key) {
  return table.kind == ConfigNode::Kind::table && table.find(key) != nullptr;
}

}  // namespace

SearchTexts read_search(const ConfigNode& root) {
  const std::vector<std::string> keys{"machine",  "calibration", "gpus",     "tensor",
                                      "data",     "pipeline",    "chunks",   "micro_batch",
                                      "schedule", "recompute",   "sharding", "memory"};
  SearchTexts given;
  const ConfigNode* const table = root.find("search");
  if (table == nullptr) return given;
  const Section section{*table, "search", keys};
  for (const std::string& key : keys)
    if (const auto field = section.find(key)) given.emplace(key, read_words(*field));
  return given;
}

SearchedText read_searched_text(const ConfigNode& root) {
  SearchedText text;
  text.options = read_search(root);
  if (const ConfigNode* const parallel = root.find("parallel")) {
    text.has_stages = has_key(*parallel, "stages");
    text.has_batch = has_key(*parallel, "microbatches") || has_key(*parallel, "global_batch");
  }
  return text;
}

}  // namespace longhaul::scenario
