#include "engine.h"

namespace pyspate {
namespace {

constexpr PyObject* Engine::* kObjects[] = {
    &Engine::loop,   &Engine::protocol, &Engine::file,   &Engine::descriptor,
    &Engine::buffer, &Engine::extra,    &Engine::address};

PyObject* engine_new(PyTypeObject* type, PyObject*, PyObject*) {
  State* const state = state_of_type(type);
  PyObject* const self = state == nullptr ? nullptr : type->tp_alloc(type, 0);
  if (self != nullptr) engine_of(self)->state = state;
  return self;
}

int engine_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (const int result = visit_base(self, visit, arg)) return result;
  for (const auto object : kObjects) Py_VISIT(engine_of(self)->*object);
  return 0;
}

int engine_clear(PyObject* self) {
  clear_base(self);
  for (const auto object : kObjects) Py_CLEAR(engine_of(self)->*object);
  return 0;
}

}  // namespace

Core* loop_of(Engine* engine) {
  PyObject* const loop = engine->loop;
  if (loop == nullptr || !PyObject_TypeCheck(loop, engine->state->core_type)) return nullptr;
  return core_of(loop)->is_closed ? nullptr : core_of(loop);
}

Core* usual_core(Engine* engine) {
  Core* const core = loop_of(engine);
  return core == nullptr || core->is_debug ? nullptr : core;
}

int descriptor_of(Engine* engine) {
  PyObject* const number = engine->descriptor;
  if (number == nullptr || !PyLong_CheckExact(number)) return -1;
  return static_cast<int>(PyLong_AsLong(number));
}

bool has_buffer(Engine* engine) {
  const Py_ssize_t size = engine->buffer == nullptr ? 0 : PyObject_Size(engine->buffer);
  if (size < 0) PyErr_Clear();
  return size != 0;
}

PyObject* fail_fatally(PyObject* self, const char* message) {
  const Ref exception = take_exception();
  return PyObject_CallMethod(self, "_fatal_error", "Os", exception.get(), message);
}

PyTypeObject* derive_engine(PyObject* module, const char* name, const char* base,
                            PyMethodDef* methods, const PyMemberDef* members) {
  const PyType_Slot slots[] = {{Py_tp_new, as_slot(engine_new)},
                               {Py_tp_dealloc, as_slot(dealloc_cleared<engine_clear>)},
                               {Py_tp_traverse, as_slot(engine_traverse)},
                               {Py_tp_clear, as_slot(engine_clear)},
                               {Py_tp_methods, methods},
                               {}};
  return derive(module, {name, base, sizeof(Engine), slots, members});
}

}  // namespace pyspate
