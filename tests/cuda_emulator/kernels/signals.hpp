#pragma once

namespace longhaul::on_host {

/// From now on a kernel of this process that uses memory that is not mapped ends as it does on a
/// GPU, with an error that stays. Elsewhere such a use ends the process as before. Under the
/// address sanitizer nothing changes: it says more.
void catch_illegal_addresses();

/// For the handler: the kernel of this thread ends here.
[[noreturn]] void illegal_address();

}  // namespace longhaul::on_host
