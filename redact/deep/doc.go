// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package deep finds values in text however they are spelled there: each character may be
// escaped, in one way or another and up to three times, and line ends, separators and the
// zeros of UTF-16 may stand between two. The table of package redact lists the spellings,
// as those of [redact.Echo].
//
// Each byte is read once. There are several ways to read it, so some matches are under way at
// each place, but never many: no text makes the search much slower than another. Of what is
// usual it reads 100 to 300 MB a second with one or two values.
package deep
