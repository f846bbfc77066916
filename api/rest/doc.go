// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package rest is the coat that speaks HTTP and JSON: everything under /v1, and
// the same under /api/v1.
//
// One table holds every operation (see operations): its route, its types and
// its handler. All else follows from it in package httpapi. Adding an operation is
// one line there and one method. Nouns with many operations have a package of their
// own below this one, whose API has the services that they need and whose rows of
// the table are what its method Operations returns; what these packages share is in
// idempotency, query and shape. Tests of all of them are here, where the whole coat is.
//
// A handler reads what was sent, asks the engine and says what came of it. It
// decides nothing about sandboxes: bounds of values that the engine knows are
// the engine's to check. What is checked here is what only the wire can get
// wrong: syntax, unknown and doubled fields, two spellings that disagree, values
// that do not fit the engine's types.
//
// Some answers exist in two shapes, since the clients of two older services use
// the same routes. There is one handler for both; where the shapes can be one
// object, they are.
//
// The package must be mounted so that it sees paths as they were sent: a mux
// that cleans them first answers redirects where a refusal is due.
package rest
