#include "http/server/file_request.h"

#include <cerrno>
#include <new>

#include "http/codec/system_error.h"
#include "http/server/exchange_state.h"
#include "http/server/file_tree.h"
#include "spate/loop.h"

namespace spate::http {

// The job does not refer to the tree, which belongs to the loop's thread.
std::error_code FileRequest::start(Exchange& exchange, std::shared_ptr<FileTree> tree,
                                   std::string key, FileQuery query) {
  const Nanos began = exchange.loop().now();
  std::unique_ptr<FileRequest> made(new (std::nothrow)
                                        FileRequest(std::move(tree), std::move(key), began));
  if (made == nullptr) return system_error(ENOMEM);
  FileRequest& request = *made;
  Result<Offloading> job = offload(
      exchange.loop(),
      [root = request.tree_->root(), query = std::move(query)] {
        return look_up(*root, query, Waiting::allowed);
      },
      [&request](Result<FoundFile> found) { request.on_found(std::move(found)); },
      request.tree_->pool());
  if (!job) return job.error();
  request.job_ = *std::move(job);
  request.exchange_ = std::move(exchange);
  ExchangeState::of(request.exchange_)->own(std::move(made));
  return {};
}

// Sending a large file gives the exchange another handler.
void FileRequest::on_found(Result<FoundFile> found) {
  const std::unique_ptr<OwnedHandler> self = ExchangeState::of(exchange_)->take_owned();
  tree_->respond(exchange_, key_, began_, std::move(found));
}

}  // namespace spate::http
