#include "http/server/exchange_additions.h"

namespace spate::http {

// A destructor of the user's may look for attributes: the list is whole whenever it is called.
ExchangeAdditions::~ExchangeAdditions() {
  while (newest_ != nullptr) {
    AttributeNode* node = std::exchange(newest_, newest_->next);
    node->destroy(node);
  }
}

void ExchangeAdditions::attach(AttributeNode* node) {
  AttributeNode* replaced = detach(node->key);
  node->next = newest_;
  newest_ = node;
  if (replaced != nullptr) replaced->destroy(replaced);
}

AttributeNode* ExchangeAdditions::find(const void* key) const {
  AttributeNode* node = newest_;
  while (node != nullptr && node->key != key) node = node->next;
  return node;
}

AttributeNode* ExchangeAdditions::detach(const void* key) {
  AttributeNode** link = &newest_;
  while (*link != nullptr && (*link)->key != key) link = &(*link)->next;
  AttributeNode* node = *link;
  if (node != nullptr) *link = node->next;
  return node;
}

}  // namespace spate::http
