// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package bearer turns a bearer token into an [access.Caller], and makes, lists
// and deletes tokens. It is the one place that looks at secrets: they are
// compared as SHA-256 hashes, and only hashes are kept. A slow hash, as for
// passwords, would add nothing: a secret that we make has 238 bits of
// randomness, which cannot be guessed at any speed.
//
// It knows the records (package store) and no wire: which header a token stands
// in is a coat's matter.
package bearer
