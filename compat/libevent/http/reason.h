// What a status code says in words.
//
// Semantics: the texts that the original sends without one of the program's: probes.
#pragma once

namespace spate::libevent {

const char* reason_of(int code);

}  // namespace spate::libevent
