// spate_resolving: a Resolving and its callback.
#include <cerrno>
#include <memory>
#include <new>
#include <vector>

#include "c/net.h"
#include "spate/net/resolver.h"
#include "spate_net.h"

using namespace spate;

struct spate_resolving {
  spate_resolved_fn* callback;
  void* data;
  Resolving attempt{};

  void on_resolved(const Result<std::vector<Address>>& result) {
    if (!result) return callback(this, c::to_code(result.error()), nullptr, 0);
    callback(this, 0, reinterpret_cast<const spate_address*>(result->data()), result->size());
  }
};

int spate_resolve(spate_resolving** resolving, spate_loop* loop, const char* host, uint16_t port,
                  int64_t timeout, spate_resolved_fn* callback, void* data) {
  *resolving = nullptr;
  if (host == nullptr || callback == nullptr) return -EINVAL;
  *resolving = new (std::nothrow) spate_resolving{callback, data};
  if (*resolving == nullptr) return c::out_of_memory_unless(false);
  ResolveOptions options;
  options.timeout = Nanos{timeout};
  (*resolving)->attempt = resolve(
      loop->loop(), host, port,
      [face = *resolving](const Result<std::vector<Address>>& result) {
        face->on_resolved(result);
      },
      options);
  return 0;
}

void spate_resolving_destroy(spate_resolving* resolving) { delete resolving; }
void* spate_resolving_data(const spate_resolving* resolving) { return resolving->data; }
