// ExchangeAdditions: the fields of the response, the functions and the attributes that middleware
// attached to an exchange.
#pragma once

#include <utility>
#include <vector>

#include "spate/http/attribute.h"
#include "spate/http/exchange.h"
#include "spate/http/fields.h"

namespace spate::http {

class ExchangeAdditions {
 public:
  ExchangeAdditions() = default;
  ExchangeAdditions(const ExchangeAdditions&) = delete;
  ExchangeAdditions& operator=(const ExchangeAdditions&) = delete;
  ~ExchangeAdditions();

  // Takes over `node`, in place of one with the same key, which is destroyed.
  void attach(AttributeNode* node);
  AttributeNode* find(const void* key) const;

  Fields fields;
  std::vector<BeforeResponse> before_response;
  std::vector<OnExchangeEnd> on_end;

 private:
  AttributeNode* detach(const void* key);

  AttributeNode* newest_ = nullptr;
};

}  // namespace spate::http
