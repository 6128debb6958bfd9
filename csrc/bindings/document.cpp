#include "bindings/document.h"

#include "bindings/error.h"
#include "bindings/plan.h"
#include "core/document.h"

namespace baracuda::bindings {
namespace {

PyObject* raise_document(const DocumentError& e) {
  return raise_refusal({Code::Document, e.where, e.got, e.want, "documents are what to_bytes() and to_json() give"},
                       Py_None);
}

// The bytes of a str, bytes or other buffer.
bool text_of(PyObject* object, Py_buffer& buffer) {
  if (!PyUnicode_Check(object)) return PyObject_GetBuffer(object, &buffer, PyBUF_SIMPLE) == 0;
  PyObject* encoded = PyUnicode_AsUTF8String(object);
  const bool good = encoded && PyObject_GetBuffer(encoded, &buffer, PyBUF_SIMPLE) == 0;
  Py_XDECREF(encoded);
  return good;
}

std::string_view view_of(const Py_buffer& buffer) {
  return {static_cast<const char*>(buffer.buf), static_cast<size_t>(buffer.len)};
}

PyObject* bytes_of(const std::string& text) {
  return PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

// Runs f over the bytes of `object`; a document's error becomes Python's.
template <class F>
PyObject* with_text(PyObject* object, F f) {
  Py_buffer buffer;
  if (!text_of(object, buffer)) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_UnicodeError)) return nullptr;
    PyErr_Clear();
    return raise_refusal({Code::Document, "", Py_TYPE(object)->tp_name, "bytes", "pass what to_bytes() gave"}, Py_None);
  }
  PyObject* out = nullptr;
  try {
    out = f(view_of(buffer));
  } catch (const DocumentError& e) {
    raise_document(e);
  }
  PyBuffer_Release(&buffer);
  return out;
}

PyObject* plan_document(PyObject*, PyObject* args) {
  PyObject *plan, *descriptor;
  if (!PyArg_ParseTuple(args, "O!O", plan_type, &plan, &descriptor)) return nullptr;
  return with_text(descriptor, [&](std::string_view text) {
    return bytes_of(write_plan(*reinterpret_cast<PlanObject*>(plan)->core, read_json(text)).write());
  });
}

// Any document, in the one form that is written.
PyObject* read_document(PyObject*, PyObject* data) {
  return with_text(data, [](std::string_view text) { return bytes_of(read_json(text).write()); });
}

PyObject* read_plan_document(PyObject*, PyObject* data) {
  return with_text(data, [](std::string_view text) {
    const Json document = read_json(text);
    read_plan(Reader(document, ""));
    return bytes_of(document.write());
  });
}

PyMethodDef methods[] = {
    {"plan_document", &plan_document, METH_VARARGS,
     "plan_document(plan, descriptor): the plan's bytes, with a descriptor in JSON."},
    {"read_plan_document", &read_plan_document, METH_O,
     "read_plan_document(bytes): the same document in the one form that is written, once all of it was found sound."},
    {"read_document", &read_document, METH_O, "read_document(bytes): any JSON, in the one form that is written."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool document_setup(PyObject* module) {
  return PyModule_AddFunctions(module, methods) == 0 && PyModule_AddIntConstant(module, "schema", kSchema) == 0;
}

}  // namespace baracuda::bindings
