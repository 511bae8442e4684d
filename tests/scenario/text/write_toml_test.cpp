#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/text/config_node.hpp"

namespace longhaul::scenario {
namespace {

ConfigNode parsed(const std::string& text) {
  return parse_toml(text, std::make_shared<const std::string>("some.toml"));
}

void expect_equal(const ConfigNode& one, const ConfigNode& other) {
  EXPECT_EQ(one.kind, other.kind);
  EXPECT_EQ(one.text, other.text);
  EXPECT_EQ(one.integer, other.integer);
  EXPECT_EQ(one.real, other.real);
  ASSERT_EQ(one.items.size(), other.items.size());
  for (std::size_t i = 0; i < one.items.size(); ++i) expect_equal(one.items[i], other.items[i]);
  ASSERT_EQ(one.entries.size(), other.entries.size());
  for (std::size_t i = 0; i < one.entries.size(); ++i) {
    EXPECT_EQ(one.entries[i].key, other.entries[i].key);
    expect_equal(one.entries[i].value, other.entries[i].value);
  }
}

TEST(WriteToml, IsReadToTheSameTree) {
  const ConfigNode tree = parsed(
      "title = \"a \\\"quoted\\\" \\\\ word\\u0001\\n\"\nwhole = -3\nreal = 0.1\nhuge = 1e300\n"
      "three = 3.0\nis = true\nlist = [1, [\"x\"], { a = 1 }]\nempty = []\n[[array]]\nx = 1\n"
      "[[array]]\nx = inf\n[table]\n\"odd key.\" = 1\ninner = { deep = { er = false } }\n[void]\n");
  expect_equal(parsed(toml_text(tree)), tree);
}

TEST(WriteToml, WritesTablesAsPeopleDo) {
  EXPECT_EQ(toml_text(parsed("[[service]]\nx = 1\n[[service]]\ny = 2\n")),
            "[[service]]\nx = 1\n[[service]]\ny = 2\n");
  EXPECT_EQ(toml_text(parsed("run.iterations = 7\nrun.name = \"x\"\ntop = 1\n")),
            "top = 1\n[run]\niterations = 7\nname = \"x\"\n");
}

}  // namespace
}  // namespace longhaul::scenario
