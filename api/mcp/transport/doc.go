// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package transport carries MCP: Streamable HTTP, in both eras of the protocol on one
// address, and HTTP+SSE, which came before it. Requests of the stateless era (2026-07-28)
// go to a handler of the SDK's without sessions, whose calls end with their HTTP request;
// all others go to one with sessions, each bound to the token that opened it, whose clients
// may come back for an answer after a broken connection. A GET that names no session opens
// one of HTTP+SSE. Calls that take long become tasks for clients that know of them.
//
// It bounds what clients hold here: sessions, streams kept for those that come back, tasks,
// and the memory of a request.
//
// # Boundaries
//
// It knows no tool, no profile and no engine: it gets the SDK's servers, and a function that
// chooses one for a request. It does not authenticate; a guard stands in front.
package transport
