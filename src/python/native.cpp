// Python's view of src/api: thin, so that docstrings here and comments there are all there is.
// src/python/longhaul/__init__.py makes these names of the package `longhaul`.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "api/longhaul.hpp"

namespace py = pybind11;
namespace api = longhaul::api;

namespace {

api::Search search_of(double seconds, std::optional<std::int64_t> moves, std::uint64_t seed,
                      int threads) {
  return {seconds, moves, seed, threads};
}

void bind_scenario(py::module_& module) {
  using api::Scenario;
  py::class_<Scenario>(module, "Scenario",
                       "Datacenters, links, model, costs and layout of a training job.")
      .def_static("load", &Scenario::load, py::arg("file"),
                  py::arg("overrides") = std::vector<std::string>{},
                  "Reads a TOML file; overrides are 'PATH=VALUE' texts.")
      .def_static("parse", &Scenario::parse, py::arg("toml"),
                  py::arg("overrides") = std::vector<std::string>{}, "The same from a text.")
      .def_property_readonly("name", &Scenario::name)
      .def_property_readonly("stages", &Scenario::stages)
      .def_property_readonly("replicas", &Scenario::replicas)
      .def_property_readonly("microbatches", &Scenario::microbatches)
      .def_property_readonly("datacenters", &Scenario::datacenters)
      .def_property_readonly("placement", &Scenario::placement,
                             "Index into datacenters of each rank.");
}

void bind_schedule(py::module_& module) {
  using api::Schedule;
  py::class_<Schedule>(module, "Schedule", "An order of blocks for each device, with no times.")
      .def_static("from_csv", &Schedule::from_csv, py::arg("csv"), py::arg("name") = "schedule",
                  "Reads Longhaul's CSV or PyTorch's.")
      .def_property_readonly("name", &Schedule::name)
      .def_property_readonly("devices", &Schedule::devices)
      .def_property_readonly("chunks", &Schedule::chunks)
      .def_property_readonly("microbatches", &Schedule::microbatches)
      .def_property_readonly("replicas", &Schedule::replicas)
      .def_property_readonly("device_of_chunk", &Schedule::device_of_chunk)
      .def("row", &Schedule::row, py::arg("device"), py::arg("replica") = 0,
           "Cells '<chunk><kind><microbatch>' of a device in their order.")
      .def("csv", &Schedule::csv)
      .def("pytorch_csv", &Schedule::pytorch_csv,
           "As torch.distributed.pipelining reads it (compute_only).");
}

void bind_prediction(py::module_& module) {
  using api::Prediction;
  using api::Row;
  py::class_<Row>(module, "Row", "One op of a simulated iteration; times in ns from its start.")
      .def_readonly("rank", &Row::rank)
      .def_readonly("lane", &Row::lane)
      .def_readonly("kind", &Row::kind)
      .def_readonly("chunk", &Row::chunk)
      .def_readonly("microbatch", &Row::microbatch)
      .def_readonly("peer", &Row::peer)
      .def_readonly("size_bytes", &Row::size_bytes)
      .def_readonly("start_ns", &Row::start_ns)
      .def_readonly("end_ns", &Row::end_ns);
  py::class_<Prediction>(module, "Prediction", "What one iteration comes to, by the model.")
      .def_readonly("makespan_ns", &Prediction::makespan_ns)
      .def_readonly("device_span_ns", &Prediction::device_span_ns)
      .def_readonly("lower_bound_ns", &Prediction::lower_bound_ns)
      .def_readonly("bubble_ratio", &Prediction::bubble_ratio)
      .def_readonly("peak_activation_bytes", &Prediction::peak_activation_bytes)
      .def_readonly("over_budget", &Prediction::over_budget)
      .def_readonly("wan_crossings_on_critical_path", &Prediction::wan_crossings_on_critical_path)
      .def_readonly("rows", &Prediction::rows);
}

std::optional<std::string> why_invalid(const api::Schedule& schedule,
                                       const std::optional<api::Scenario>& scenario,
                                       api::Comm comm) {
  return scenario ? api::why_invalid(schedule, *scenario, comm) : api::why_invalid(schedule);
}

}  // namespace

PYBIND11_MODULE(longhaul_native, module) {
  module.doc() = "Make, check and simulate pipeline schedules across datacenters.";
  py::register_exception<api::Error>(module, "Error", PyExc_ValueError);
  py::enum_<api::Comm>(module, "Comm")
      .value("decoupled", api::Comm::decoupled)
      .value("grouped", api::Comm::grouped);
  bind_scenario(module);
  bind_schedule(module);
  bind_prediction(module);
  module.def("version", &api::version);
  module.def("schedule_names", &api::schedule_names, "Names that make_schedule() takes.");
  module.def(
      "make_schedule",
      [](const std::string& name, const api::Scenario& scenario, api::Comm comm, double seconds,
         std::optional<std::int64_t> moves, std::uint64_t seed, int threads) {
        const py::gil_scoped_release others_run;
        return api::make_schedule(name, scenario, comm, search_of(seconds, moves, seed, threads));
      },
      py::arg("name"), py::arg("scenario"), py::arg("comm") = api::Comm::decoupled, py::kw_only(),
      py::arg("seconds") = 1.0, py::arg("moves") = py::none(), py::arg("seed") = 1,
      py::arg("threads") = 0,
      "Makes a schedule by name; the last four are for those that are looked for (best).");
  module.def("why_invalid", &why_invalid, py::arg("schedule"), py::arg("scenario") = py::none(),
             py::arg("comm") = api::Comm::decoupled,
             "Why it cannot run, on a scenario or at all; None: it can.");
  module.def("simulate", &api::simulate, py::arg("schedule"), py::arg("scenario"),
             py::arg("comm") = api::Comm::decoupled, py::call_guard<py::gil_scoped_release>(),
             "Exact to the nanosecond.");
}
