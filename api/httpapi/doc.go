// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package httpapi is what coats that speak HTTP and JSON are made of. A coat has a table of
// operations, each with its route, its types and its handler; routes, the reading of requests,
// the refusal of what is wrong with one, and the OpenAPI document follow from the table. The
// package knows no coat, no engine and no type of any wire.
//
// # Terms
//
// An [Operation] is one row of the table: [Op] makes one that answers JSON, [Raw] one that writes
// its answer itself. A [Handler] serves operations behind the guard, at the same paths below each
// of its bases. A [Call] is one request on its way through an operation. [Document] describes the
// same table to clients.
//
// # What a coat may rely on
//
// An operation's function is called when the caller is known and all that its input type asks for
// was read. A parameter or a field of the body that the type does not have, one that is given
// twice, one of another type, and one whose name differs in letter case never reach it: the answer
// lists all of them, and what was likely meant. [Spellings] does the same for fields that have two
// names, and tells an engine's error about a field under the name that the caller wrote.
//
// An error is answered as [Options.Error] writes it, once: where an answer was begun already the
// connection is cut, so that half of it cannot look whole. In a stream it is the last event
// ([Events.Fail]).
//
// What an answer holds in memory is counted in the call's room once it is large ([Call.Answer],
// [Array], [Call.AnswerText]), and a client that takes nothing of an answer for [Options.Stall]
// loses its connection ([StallWriter]).
//
// Work that may take long runs in a context of [Call.Bound], which ends when the handler is
// closed; what ends with its client uses the request's own.
//
// # Concurrency
//
// A Handler serves requests concurrently. A Call belongs to its request's goroutine; the methods
// of [Events] may be called from several.
package httpapi
