// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package keyed has a request that its client repeats with the same idempotency key begin
// nothing twice, whenever the server ends in between.
//
// A [Call] travels in the context of its request. The store that [Keys.Store] returns writes
// down what the request makes in the same transaction that makes it: a record of the request
// is there exactly if what it made is, and no verb has to think of it. What was made and
// has no answer yet is the caller's to look after: it knows how to ask for it.
//
// The package knows the store's contract, and neither HTTP nor the engine.
package keyed
