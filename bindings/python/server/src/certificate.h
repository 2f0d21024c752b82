// The subject of a certificate.
#pragma once

#include "state.h"

namespace spate_server {

// subject_of(certificate): returns the distinguished name of the subject, as in RFC 4514. The
// argument is DER.
PyObject* subject_of(PyObject* module, PyObject* certificate);

}  // namespace spate_server
