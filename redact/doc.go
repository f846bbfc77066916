// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package redact keeps the values of secrets out of text.
//
// A [Place] is where a value could come out, a [Spelling] a way in which it may be written
// there. One table says which spellings each place masks, and where it does not mask one,
// why: [Place.Masks]. Package redacttest tries every spelling at a place, and fails where
// the table and what comes out differ.
//
// Two searches look for values:
//
//   - The exact search knows the texts that a value becomes when common programs quote or
//     encode it ([Place.Forms]), and finds those. It reads text at the speed of memory. A
//     [Set] overwrites each byte of what it finds by a '*', so that lengths and positions
//     stay, and works on text that comes in pieces; a [Labels] replaces what it finds by the
//     name of the secret, in texts that are short and whole. Package redactlog does so for a
//     log.
//   - The deep search, package deep, reads every character that may be escaped, and passes
//     over what may stand between two. It finds what no list has, and takes 10 to 100
//     times as long.
//
// Neither finds a value of which a program made something else: reversed, encrypted,
// compressed, letter by letter. Redaction keeps a value from being shown by accident. It
// does not keep one from a program that has it and wants to show it.
//
// The agent links this package and runs among untrusted code, so it imports nothing of ours.
package redact
