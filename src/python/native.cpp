// Python's view of src/api: thin, so that docstrings here and comments there are all there is.
// src/python/longhaul/__init__.py makes these names of the package `longhaul`.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "api/longhaul.hpp"

namespace py = pybind11;
namespace api = longhaul::api;

namespace {

longhaul::api::Search search_of(double seconds, std::optional<std::int64_t> moves,
                                std::uint64_t seed, int threads, std::string placement) {
  return {seconds, moves, seed, threads, std::move(placement)};
}

void bind_scenario(py::module_& module) {
  using longhaul::api::Scenario;
  py::class_<longhaul::api::Scenario>(
      module, "Scenario", "Datacenters, links, model, costs and layout of a training job.")
      .def_static("load", &longhaul::api::Scenario::load, py::arg("file"),
                  py::arg("overrides") = std::vector<std::string>{},
                  "Reads a TOML file; overrides are 'PATH=VALUE' texts.")
      .def_static("parse", &longhaul::api::Scenario::parse, py::arg("toml"),
                  py::arg("overrides") = std::vector<std::string>{}, "The same from a text.")
      .def_property_readonly("name", &longhaul::api::Scenario::name)
      .def_property_readonly("stages", &longhaul::api::Scenario::stages)
      .def_property_readonly("replicas", &longhaul::api::Scenario::replicas)
      .def_property_readonly("microbatches", &longhaul::api::Scenario::microbatches)
      .def_property_readonly("datacenters", &longhaul::api::Scenario::datacenters)
      .def_property_readonly("placement", &longhaul::api::Scenario::placement,
                             "Index into datacenters of each rank.");
}

void bind_schedule(py::module_& module) {
  using longhaul::api::Schedule;
  py::class_<longhaul::api::Schedule>(module, "Schedule",
                                      "An order of blocks for each device, with no times.")
      .def_static("from_csv", &longhaul::api::Schedule::from_csv, py::arg("csv"),
                  py::arg("name") = "schedule", "Reads Longhaul's CSV or PyTorch's.")
      .def_property_readonly("name", &longhaul::api::Schedule::name)
      .def_property_readonly("devices", &longhaul::api::Schedule::devices)
      .def_property_readonly("chunks", &longhaul::api::Schedule::chunks)
      .def_property_readonly("microbatches", &longhaul::api::Schedule::microbatches)
      .def_property_readonly("replicas", &longhaul::api::Schedule::replicas)
      .def_property_readonly("device_of_chunk", &longhaul::api::Schedule::device_of_chunk)
      .def("row", &longhaul::api::Schedule::row, py::arg("device"), py::arg("replica") = 0,
           "Cells '<chunk><kind><microbatch>' of a device in their order.")
      .def("csv", &longhaul::api::Schedule::csv)
      .def("pytorch_csv", &longhaul::api::Schedule::pytorch_csv,
           "As torch.distributed.pipelining reads it (compute_only).");
}

void bind_prediction(py::module_& module) {
  using longhaul::api::Prediction;
  using longhaul::api::Row;
  py::class_<longhaul::api::Row>(module, "Row",
                                 "One op of a simulated iteration; times in ns from its start.")
      .def_readonly("rank", &longhaul::api::Row::rank)
      .def_readonly("lane", &longhaul::api::Row::lane)
      .def_readonly("kind", &longhaul::api::Row::kind)
      .def_readonly("chunk", &longhaul::api::Row::chunk)
      .def_readonly("microbatch", &longhaul::api::Row::microbatch)
      .def_readonly("peer", &longhaul::api::Row::peer)
      .def_readonly("size_bytes", &longhaul::api::Row::size_bytes)
      .def_readonly("start_ns", &longhaul::api::Row::start_ns)
      .def_readonly("end_ns", &longhaul::api::Row::end_ns);
  py::class_<longhaul::api::Prediction>(module, "Prediction",
                                        "What one iteration comes to, by the model.")
      .def_readonly("makespan_ns", &longhaul::api::Prediction::makespan_ns)
      .def_readonly("device_span_ns", &longhaul::api::Prediction::device_span_ns)
      .def_readonly("lower_bound_ns", &longhaul::api::Prediction::lower_bound_ns)
      .def_readonly("bubble_ratio", &longhaul::api::Prediction::bubble_ratio)
      .def_readonly("peak_activation_bytes", &longhaul::api::Prediction::peak_activation_bytes)
      .def_readonly("over_budget", &longhaul::api::Prediction::over_budget)
      .def_readonly("wan_crossings_on_critical_path",
                    &longhaul::api::Prediction::wan_crossings_on_critical_path)
      .def_readonly("rows", &longhaul::api::Prediction::rows);
}

std::optional<std::string> why_invalid(const longhaul::api::Schedule& schedule,
                                       const std::optional<longhaul::api::Scenario>& scenario,
                                       longhaul::api::Comm comm) {
  return scenario ? longhaul::api::why_invalid(schedule, *scenario, comm)
                  : longhaul::api::why_invalid(schedule);
}

/// The answer as text, and whether it is yes.
std::pair<std::string, bool> ask(const std::vector<std::string>& command) {
  longhaul::api::Answer answer = longhaul::api::ask(command);
  return {std::move(answer.json), answer.yes};
}

}  // namespace

PYBIND11_MODULE(longhaul_native, module) {
  module.doc() = "Make, check and simulate pipeline schedules across datacenters.";
  py::register_exception<longhaul::api::Error>(module, "Error", PyExc_ValueError);
  py::enum_<longhaul::api::Comm>(module, "Comm")
      .value("decoupled", longhaul::api::Comm::decoupled)
      .value("grouped", longhaul::api::Comm::grouped);
  bind_scenario(module);
  bind_schedule(module);
  bind_prediction(module);
  module.def("commands", &longhaul::api::commands, "Names of the tool's commands.");
  module.def(
      "ask", &ask, py::arg("command"), py::call_guard<py::gil_scoped_release>(),
      "What a command answers: JSON, and whether the answer is yes. longhaul.tool calls it.");
  module.def("version", &longhaul::api::version);
  module.def("schedule_names", &longhaul::api::schedule_names, "Names that make_schedule() takes.");
  module.def(
      "make_schedule",
      [](const std::string& name, const longhaul::api::Scenario& scenario, longhaul::api::Comm comm,
         double seconds, std::optional<std::int64_t> moves, std::uint64_t seed, int threads,
         const std::string& placement) {
        const py::gil_scoped_release others_run;
        return longhaul::api::make_schedule(name, scenario, comm,
                                            search_of(seconds, moves, seed, threads, placement));
      },
      py::arg("name"), py::arg("scenario"), py::arg("comm") = longhaul::api::Comm::decoupled,
      py::kw_only(), py::arg("seconds") = 1.0, py::arg("moves") = py::none(), py::arg("seed") = 1,
      py::arg("threads") = 0, py::arg("placement") = "",
      "Makes a schedule by name; the last five are for those that are looked for (best). placement "
      "is a comma list of ud, loop, wave, bd; 'ud,loop,wave': as pytorch_csv() can hold it.");
  module.def("why_invalid", &why_invalid, py::arg("schedule"), py::arg("scenario") = py::none(),
             py::arg("comm") = longhaul::api::Comm::decoupled,
             "Why it cannot run, on a scenario or at all; None: it can.");
  module.def("simulate", &longhaul::api::simulate, py::arg("schedule"), py::arg("scenario"),
             py::arg("comm") = longhaul::api::Comm::decoupled,
             py::call_guard<py::gil_scoped_release>(), "Exact to the nanosecond.");
}
