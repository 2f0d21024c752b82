// Virtual hosts, and the other names of a server.
//
// Semantics: event2/http.h (evhttp_add_virtual_host and the functions after it); probed: an alias
// has precedence over a pattern.
#include "compat/libevent/ascii.h"
#include "compat/libevent/http/server.h"
#include "compat/libevent/memory.h"

using namespace spate::libevent;

namespace {

// The pattern's * stands for any text.
bool matches(const char* pattern, const char* name) {
  const char* star = nullptr;
  const char* resume = nullptr;
  while (*name != 0) {
    if (*pattern == '*') {
      star = ++pattern;
      resume = name;
    } else if (lower(*pattern) == lower(*name)) {
      ++pattern;
      ++name;
    } else if (star != nullptr) {
      pattern = star;
      name = ++resume;
    } else {
      return false;
    }
  }
  while (*pattern == '*') ++pattern;
  return *pattern == 0;
}

evhttp* find_alias(evhttp& server, const char* name) {
  const ServerAlias* alias;
  TAILQ_FOREACH(alias, &server.aliases, next) {
    if (has_equal_text(alias->name, name)) return &server;
  }
  evhttp* host;
  TAILQ_FOREACH(host, &server.hosts, next) {
    if (evhttp* found = find_alias(*host, name)) return found;
  }
  return nullptr;
}

evhttp* find_pattern(evhttp& server, const char* name) {
  evhttp* host;
  TAILQ_FOREACH(host, &server.hosts, next) {
    if (!matches(host->pattern, name)) continue;
    evhttp* nearer = find_pattern(*host, name);
    return nearer != nullptr ? nearer : host;
  }
  return nullptr;
}

evhttp* find_host(evhttp& server, const char* name) {
  evhttp* found = find_alias(server, name);
  return found != nullptr ? found : find_pattern(server, name);
}

void free_alias(evhttp& server, ServerAlias* alias) {
  TAILQ_REMOVE(&server.aliases, alias, next);
  release(alias->name);
  release(alias);
}

}  // namespace

evhttp& spate::libevent::host_for(evhttp& server, const char* name) {
  evhttp* found = name != nullptr ? find_host(server, name) : nullptr;
  return found != nullptr ? *found : server;
}

bool spate::libevent::knows_host(evhttp& server, const char* name) {
  return find_host(server, name) != nullptr;
}

void spate::libevent::free_hosts(evhttp& server) {
  while (evhttp* host = TAILQ_FIRST(&server.hosts)) {
    TAILQ_REMOVE(&server.hosts, host, next);
    evhttp_free(host);
  }
  while (ServerAlias* alias = TAILQ_FIRST(&server.aliases)) free_alias(server, alias);
}

// ---- the exported functions

int evhttp_add_virtual_host(evhttp* server, const char* pattern, evhttp* host) {
  if (host->pattern != nullptr || !TAILQ_EMPTY(&host->sockets)) return -1;
  host->pattern = duplicate(pattern);
  if (host->pattern == nullptr) return -1;
  TAILQ_INSERT_TAIL(&server->hosts, host, next);
  return 0;
}

int evhttp_remove_virtual_host(evhttp* server, evhttp* host) {
  if (host->pattern == nullptr) return -1;
  TAILQ_REMOVE(&server->hosts, host, next);
  release(host->pattern);
  host->pattern = nullptr;
  return 0;
}

int evhttp_add_server_alias(evhttp* server, const char* name) {
  auto* alias = static_cast<ServerAlias*>(allocate(sizeof(ServerAlias)));
  if (alias == nullptr) return -1;
  alias->name = duplicate(name);
  if (alias->name == nullptr) {
    release(alias);
    return -1;
  }
  TAILQ_INSERT_TAIL(&server->aliases, alias, next);
  return 0;
}

int evhttp_remove_server_alias(evhttp* server, const char* name) {
  ServerAlias* alias;
  TAILQ_FOREACH(alias, &server->aliases, next) {
    if (!has_equal_text(alias->name, name)) continue;
    free_alias(*server, alias);
    return 0;
  }
  return -1;
}
