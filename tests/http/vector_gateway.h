// What of a vector's bytes a gateway sends to the server behind it.
#pragma once

#include "http/vector_file.h"

namespace spate::http {

// Each request that the codec takes, framed anew, and nothing else; however the bytes are split.
// Prints what is not so.
bool holds_through_gateway(const Vector& vector);

}  // namespace spate::http
