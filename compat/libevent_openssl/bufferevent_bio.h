// A BIO that reads from the input of a bufferevent and writes to its output.
#pragma once

#include <openssl/bio.h>

#include "compat/libevent/bufferevent_api.h"

namespace spate::libevent {

// Null when memory runs out. The bufferevent has to stay for as long.
BIO* make_bufferevent_bio(bufferevent* bev);

}  // namespace spate::libevent
