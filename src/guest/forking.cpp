// The module `forking`: where a template waits for requests to fork (launcher/join.h).
//
// Written against the stable ABI of CPython 3.9, so that one file serves every interpreter. It is no C++ to
// the outside: nothing of the standard library's runtime is linked.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "guest/resting_memory.h"
#include "launcher/join.h"
#include "launcher/spec_file.h"

namespace {

PyObject* wait(PyObject*, PyObject* arguments) {
  int socket = -1;
  int file = -1;
  if (PyArg_ParseTuple(arguments, "ii", &socket, &file) == 0) return nullptr;
  static prims::launcher::wire::Spec spec;
  if (const prims::launcher::Failure failure = prims::launcher::map_spec(file, spec)) {
    return PyErr_Format(PyExc_OSError, "%s: errno %d", failure.step, failure.error);
  }
  prims::launcher::serve_forks(socket, spec, {PyOS_BeforeFork, PyOS_AfterFork_Parent, PyOS_AfterFork_Child});
  Py_RETURN_NONE;
}

PyObject* rest(PyObject*, PyObject*) {
  prims::guest::rest_memory();
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"rest", rest, METH_NOARGS,
     "rest(): moves the memory of this process, which has one thread, into a sealed file: from then on a "
     "fork "
     "costs what it touches."},
    {"wait", wait, METH_VARARGS,
     "wait(socket, spec): serves requests to fork; returns in each fork, in its sandbox, and never here."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "forking", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_forking() {  // NOLINT(readability-identifier-naming): the name CPython looks for
  prims::guest::note_object_memory();
  return PyModule_Create(&definition);
}
