// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package serve lets a server's calls in to an agent, wherever they come from: off listeners that others
// reach, too, or over a stream that somebody carries. Whoever comes shows by a handshake that it knows the
// key; the others get 37 bytes that are no use to them, and a few seconds. How many may be in that state
// is bounded; when one more comes, who has waited longest goes, so that a crowd of strangers keeps
// nobody out who knows the key and tries again.
package serve
