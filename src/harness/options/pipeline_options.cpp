#include "harness/options/pipeline_options.hpp"

#include "base/error.hpp"
#include "base/unit_text.hpp"
#include "cli/evaluate.hpp"

namespace longhaul::bench {

Duration deadline_of(const std::string& text) {
  const Duration deadline = parse_duration(text);
  if (deadline <= Duration::zero())
    fail("--deadline {} is not positive (nobody could ever wait). Give 10s.", text);
  return deadline;
}

Bytes payload_of(const std::string& text) {
  const Bytes payload = parse_bytes(text);
  if (payload > Bytes{1 << 30})
    fail("--payload {} is more than a message can hold (1 GiB). Give 64KiB.", text);
  return payload;
}

PipelineSettings settings_of(const PipelineOptions& options) {
  PipelineSettings settings;
  settings.arrangement = arrangement_of(options.comm);
  settings.planner = planner_options_of(options.planner, settings.arrangement);
  settings.deadline = deadline_of(options.deadline);
  settings.engine.payload = payload_of(options.payload);
  settings.engine.credit = parse_duration(options.credit);
  if (options.emulate != "on" && options.emulate != "off")
    fail("--emulate {} is neither on nor off. Write --emulate on.", options.emulate);
  settings.transport = transport_kind_of(options.transport);
  settings.engine.emulation = options.emulate == "on" ? Emulation::on : Emulation::off;
  if (settings.engine.emulation == Emulation::off && !options.changes.empty())
    fail("--change needs --emulate on (a network as it is changes by itself). Leave one out.");
  if (!(options.switch_threshold_percent > 0))
    fail("--switch-threshold {} is not positive (every iteration deviates by something). Give 10.",
         options.switch_threshold_percent);
  if (options.trace != "on" && options.trace != "off")
    fail("--trace {} is neither on nor off. Write --trace on.", options.trace);
  if (options.resume && options.trace == "off")
    fail("--resume needs --trace on (it goes on behind the last iteration that was traced).");
  if (options.resume && options.out.empty())
    fail("--resume needs --out (it goes on with the run of a directory). Name it.");
  if (options.resume && (options.adaptive || !options.changes.empty()))
    fail(
        "--resume cannot go on with {} (what was believed of the links is not kept). Begin anew in "
        "another directory.",
        options.adaptive ? "--adaptive" : "--change");
  if (!options.confidence.empty() && (options.adaptive || !options.changes.empty()))
    fail(
        "--confidence does not go with {} (iterations on other links or in another order are no "
        "sample of one time). Give --iterations.",
        options.adaptive ? "--adaptive" : "--change");
  settings.compute = compute_settings_of(options.compute);
  settings.engine.marks = settings.compute.device == DeviceKind::cuda;
  if (options.resume && settings.compute.real)
    fail(
        "--resume cannot go on with --compute real (weights are not kept when a run ends). Begin "
        "anew in another directory.");
  if (!options.fault.empty()) settings.engine.fault = parse_fault(options.fault);
  if (settings.engine.fault && settings.engine.fault->kind == FaultKind::perturb &&
      !settings.compute.real)
    fail("--fault {} needs --compute real (timed blocks have no weights).", options.fault);
  return settings;
}

}  // namespace longhaul::bench
