// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mask keeps values out of text: each byte of an occurrence becomes a '*', so
// that lengths and positions stay. All occurrences are found, those that overlap or
// stand within each other included, in one pass and in time that does not depend on what the
// text or the values are.
//
// A value is looked for as it is, and in the forms that it commonly takes on its way out:
//
//   - without the line ends that it ends with;
//   - with CR LF for each LF, as a terminal writes it;
//   - as JSON and most languages write it within quotes;
//   - as base64, in both alphabets, wherever in the encoded text it stands: of values of
//     [minEncoded] to [maxEncoded] bytes, and but for the characters at its edges that
//     also say something of what stands beside it.
//
// No form is longer than twice the value. What is not found: other encodings (percent, hex,
// compression, \u escapes), base64 that is broken into lines within the value, and a value
// whose parts something stands between. Whoever wants to get a value out, can.
package mask
