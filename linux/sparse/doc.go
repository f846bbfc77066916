// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package sparse writes and reads files with holes in a tar archive: the entry of one has [Record], and holds its data without the holes.
// It knows neither what else an archive has nor whose files they are.
package sparse

// Record is the key of the PAX record with the size of a file with holes. Its entry holds each part that is data, after the
// part's offset and length in 8 bytes each, big-endian.
const Record = "SANDPIT.sparse"

const headSize = 16 // bytes before each part
