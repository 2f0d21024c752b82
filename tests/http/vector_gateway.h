// Checks the bytes that a gateway sends upstream for a vector.
#pragma once

#include "http/vector_file.h"

namespace spate::http {

// Returns true if each request that the codec accepts is sent, framed again, and nothing else,
// however the bytes are split. Prints any difference.
bool holds_through_gateway(const Vector& vector);

}  // namespace spate::http
