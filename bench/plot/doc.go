// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package plot draws measured figures as SVG: bars with whiskers for those who are
// compared, lines for a cost as it grows, and shifts for differences from a host.
//
// A drawing is a value with a method SVG, whose bytes depend on the value alone. It
// needs no script, no font and nothing else from anywhere, follows the reader's light
// or dark scheme, and says in words, for those who do not see it, all that it shows.
// All text is escaped, whatever is in it.
//
// The package draws numbers and knows nothing of what they are.
package plot
