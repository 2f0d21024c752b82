// FileRequest: an exchange that waits for a look-up of the pool. Its exchange owns it.
#pragma once

#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "http/server/file_lookup.h"
#include "http/server/owned_handler.h"
#include "spate/http/exchange.h"
#include "spate/offload.h"
#include "spate/time.h"

namespace spate::http {

class FileTree;

class FileRequest final : public OwnedHandler {
 public:
  // Takes the exchange, unless it returns an error of the pool.
  static std::error_code start(Exchange& exchange, std::shared_ptr<FileTree> tree, std::string key,
                               FileQuery query);

 private:
  FileRequest(std::shared_ptr<FileTree> tree, std::string key, Nanos began)
      : tree_(std::move(tree)), key_(std::move(key)), began_(began) {}

  void on_found(Result<FoundFile> found);

  const std::shared_ptr<FileTree> tree_;
  const std::string key_;
  const Nanos began_;
  Exchange exchange_;
  Offloading job_;
};

}  // namespace spate::http
