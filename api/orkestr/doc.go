// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package orkestr is the coat for Orkestr's SDK, the Python package orkestr: it reaches this server by
// ORKESTR_BASE_URL=http://HOST/orkestr and ORKESTR_API_KEY=<a token>. It serves what that SDK asks of sandboxes below [Base].
// It decides nothing: each operation is a translation of one of the engine's.
//
// # What the SDK relies on
//
// A sandbox has an end, and every field of it that the SDK reads. A command that ran out of time, or that a signal ended, is
// an error with a code of its own, and so is what the SDK tries again by itself. Streams are server-sent events whose data
// has a kind, and end by one that says so. Fields that are not known are ignored; a field that asks for what cannot be had
// is refused by its name.
package orkestr
