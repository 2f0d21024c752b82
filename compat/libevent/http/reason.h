// The reason phrase of a status code.
//
// Semantics: the phrases that the original sends by default; probed.
#pragma once

namespace spate::libevent {

const char* reason_of(int code);

}  // namespace spate::libevent
