// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package idempotency serves requests that have an idempotency key, for every part of the coat.
//
// [Op] and [Raw] make operations whose handlers get a [Call], which knows whether the request has a key and what
// an earlier one with the same key has made. An operation says by [Keying] as its Extension how it takes a key; a
// POST that takes none says by [Keyless] why. [Serve] is what serves the operations of the table.
package idempotency
