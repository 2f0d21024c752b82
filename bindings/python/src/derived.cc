#include "derived.h"

#include "queue.h"

namespace pyspate {

std::atomic<std::size_t> native_offset;

namespace {

// Of asyncio's base classes, the one with the most slots.
constexpr char kLargestBase[] = "_FlowControlMixin";
std::atomic<std::size_t> slot_count;

PyObject** slots_of(PyObject* self) {
  return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + sizeof(PyObject));
}

// Finds where native parts begin. Each interpreter computes the same.
bool find_offset(PyObject* transports) {
  const Ref largest(PyObject_GetAttrString(transports, kLargestBase));
  if (!largest) return false;
  const auto size = static_cast<std::size_t>(
      reinterpret_cast<PyTypeObject*>(largest.get())->tp_basicsize);
  constexpr std::size_t kAlignment = alignof(std::max_align_t);
  // A smaller base leaves some of them null.
  slot_count = (size - sizeof(PyObject)) / sizeof(PyObject*);
  native_offset = (size + kAlignment - 1) / kAlignment * kAlignment;
  return true;
}

bool move_members(const PyMemberDef* from, Array<PyMemberDef>& to) {
  for (; from->name != nullptr; ++from) {
    PyMemberDef member = *from;
    member.offset += static_cast<Py_ssize_t>(native_offset.load());
    if (!to.push(member)) return false;
  }
  return to.push({});
}

PyTypeObject* make(PyObject* module, const Derived& derived, PyObject* bases,
                   Array<PyMemberDef>& members, Array<PyType_Slot>& slots) {
  for (const PyType_Slot* slot = derived.slots; slot->slot != 0; ++slot) {
    if (!slots.push(*slot)) return nullptr;
  }
  if (!move_members(derived.members, members)) return nullptr;
  if (!slots.push({Py_tp_members, members.begin()}) || !slots.push({})) return nullptr;
  PyType_Spec spec = {derived.name, static_cast<int>(native_offset + derived.size), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                      slots.begin()};
  return reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(module, &spec, bases));
}

}  // namespace

PyTypeObject* derive(PyObject* module, const Derived& derived) {
  const Ref transports(PyImport_ImportModule("asyncio.transports"));
  if (!transports || !find_offset(transports.get())) return nullptr;
  const Ref base(PyObject_GetAttrString(transports.get(), derived.base));
  const Ref bases(base ? PyTuple_Pack(1, base.get()) : nullptr);
  if (!bases) return nullptr;
  Array<PyMemberDef> members{};
  Array<PyType_Slot> slots{};
  PyTypeObject* const type = make(module, derived, bases.get(), members, slots);
  members.free();
  slots.free();
  return type;
}

int visit_base(PyObject* self, visitproc visit, void* arg) {
  for (std::size_t i = 0; i < slot_count; ++i) Py_VISIT(slots_of(self)[i]);
  return 0;
}

void clear_base(PyObject* self) {
  for (std::size_t i = 0; i < slot_count; ++i) Py_CLEAR(slots_of(self)[i]);
}

}  // namespace pyspate
