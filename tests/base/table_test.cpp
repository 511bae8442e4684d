#include "base/table.hpp"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

Table numbered(std::size_t wide) {
  Table table{
      {{"name", Align::left}, {"kept"}, {"second", Align::right, 2}, {"first", Align::right, 1}}};
  table.add_row({std::string(wide, 'x'), "1", "2", "3"});
  return table;
}

TEST(Table, PutsColumnsSideBySide) {
  EXPECT_EQ(numbered(4).text(),
            "name  kept  second  first\n"
            "----  ----  ------  -----\n"
            "xxxx     1       2      3\n");
  EXPECT_EQ(numbered(4).text(TableWidth::fitting), numbered(4).text());
}

// 21 columns beside the name: 99 fit, and one more costs the first column of 2 + 5.
TEST(Table, ColumnsLeaveInTheirOrderUntilItFits) {
  const auto header = [](std::size_t wide) {
    const std::string text = numbered(wide).text(TableWidth::fitting);
    return text.substr(4, text.find('\n') - 4);
  };
  EXPECT_TRUE(header(99).ends_with("kept  second  first"));
  EXPECT_TRUE(header(100).ends_with("kept  second"));
  EXPECT_TRUE(header(106).ends_with("kept  second"));
  EXPECT_TRUE(header(107).ends_with("kept"));
  EXPECT_TRUE(numbered(107)
                  .text(TableWidth::fitting)
                  .ends_with("(--wide shows the rest: second, first)\n"));
  EXPECT_EQ(numbered(107).text().find("--wide"), std::string::npos);
}

TEST(Table, CutsTheBeginningOfNamesWhereNothingElseHelps) {
  Table table{{{"name", Align::left}, {"n"}}};
  table.add_row({std::string(200, 'a') + ".csv", "7"});
  const std::string text = table.text(TableWidth::fitting);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    EXPECT_EQ(text.find('\n', at) - at, kTableWidth);
  EXPECT_NE(text.find("\n..."), std::string::npos);
  EXPECT_NE(text.find("aaa.csv  7\n"), std::string::npos);
}

}  // namespace
}  // namespace longhaul
