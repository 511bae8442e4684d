# The interface for other programs: one shared library with all modules that it uses inside, and,
# where pybind11 is found, a Python module on top of it. Only src/api/longhaul.hpp is public.
set(api_include_root ${CMAKE_BINARY_DIR}/include/api)
file(MAKE_DIRECTORY ${api_include_root})
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/api ${api_include_root}/api SYMBOLIC)

add_library(longhaul_api SHARED ${CMAKE_SOURCE_DIR}/src/api/longhaul.cpp)
target_include_directories(longhaul_api PUBLIC $<BUILD_INTERFACE:${api_include_root}>
                                               $<INSTALL_INTERFACE:include>)
target_link_libraries(longhaul_api PRIVATE $<BUILD_INTERFACE:longhaul_cli>
                                           $<BUILD_INTERFACE:longhaul_flags>)
target_compile_features(longhaul_api PUBLIC cxx_std_17)
set_target_properties(longhaul_api PROPERTIES OUTPUT_NAME longhaul EXPORT_NAME longhaul
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
longhaul_precompiled(longhaul_api json)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  # What is inside stays inside: symbols of our modules and of {fmt} are not exported.
  target_link_options(longhaul_api PRIVATE LINKER:--exclude-libs,ALL)
endif()

if(NOT LONGHAUL_WITH_PYTHON)
  return()
endif()
# The interpreter of scripts/setup first: the module belongs to the one that imports it.
if(NOT Python3_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  set(Python3_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()
find_package(Python3 QUIET COMPONENTS Interpreter Development.Module)
if(Python3_Interpreter_FOUND AND NOT pybind11_DIR)
  execute_process(COMMAND ${Python3_EXECUTABLE} -m pybind11 --cmakedir
                  OUTPUT_VARIABLE pybind11_of_python OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(PYBIND11_FINDPYTHON OFF)
set(PYTHON_EXECUTABLE ${Python3_EXECUTABLE})
if(Python3_Development.Module_FOUND)
  find_package(pybind11 2.10 QUIET CONFIG HINTS ${pybind11_of_python})
endif()
if(NOT pybind11_FOUND OR NOT Python3_Development.Module_FOUND)
  message(STATUS "No Python module: pybind11 2.10 or Python's headers are not here")
  return()
endif()
add_library(longhaul_native MODULE ${CMAKE_SOURCE_DIR}/src/python/native.cpp)
target_link_libraries(longhaul_native PRIVATE longhaul_api pybind11::headers Python3::Module)
# pybind11's types are hidden, so what holds them must be too.
set_target_properties(longhaul_native PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
                      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python
                      SUFFIX ".${Python3_SOABI}${CMAKE_SHARED_MODULE_SUFFIX}")
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_options(longhaul_native PRIVATE -Os)
endif()
