#include "support/pipeline_options.hpp"

#include "base/error.hpp"
#include "base/unit_text.hpp"
#include "cli/evaluate.hpp"

namespace longhaul::bench {

PipelineSettings settings_of(const PipelineOptions& options) {
  PipelineSettings settings;
  settings.arrangement = arrangement_of(options.comm);
  settings.deadline = parse_duration(options.deadline);
  if (settings.deadline <= Duration::zero())
    fail("--deadline {} is not positive (nobody could ever wait). Give 10s.", options.deadline);
  settings.engine.payload = parse_bytes(options.payload);
  if (settings.engine.payload > Bytes{1 << 30})
    fail("--payload {} is more than a message can hold (1 GiB). Give 64KiB.", options.payload);
  if (options.emulate != "on" && options.emulate != "off")
    fail("--emulate {} is neither on nor off. Write --emulate on.", options.emulate);
  settings.engine.emulation = options.emulate == "on" ? Emulation::on : Emulation::off;
  if (!options.fault.empty()) settings.engine.fault = parse_fault(options.fault);
  return settings;
}

}  // namespace longhaul::bench
