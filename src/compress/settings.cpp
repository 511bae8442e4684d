#include "compress/settings.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/kept_share.hpp"

namespace longhaul::compress {

double parse_keep(std::string_view what, std::string_view text) {
  const std::optional<double> keep = kept_share_in(text);
  if (!keep) fail("{}: \"{}\" is no share. Give one, as in 1% or 0.01.", what, text);
  if (!is_kept_share(*keep))
    fail("{}: {} is not above 0 and at most 100%. Give another, as in 1%.", what, text);
  return *keep;
}

void check(const Settings& settings) {
  if (!is_kept_share(settings.keep))
    fail("keep is {} (a share of the numbers). Give one above 0 and at most 1.", settings.keep);
  const int block = settings.block;
  if (!is_kept_block(block))
    fail("block is {} (numbers that are kept together). Give 1, 2, 4, 8 or 16.", block);
  if (settings.method == Method::topk && block != 1)
    fail("topk keeps single numbers (block is {}). Leave the block out, or take method block.",
         block);
}

}  // namespace longhaul::compress
