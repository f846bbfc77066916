// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package chunks keeps streams in a [blob.Store], cut into chunks where their content says so. What two of them have in common is kept
// once, wherever it stands in them.
//
// A stream is an [Index] of chunks, which whoever writes it keeps. A chunk is a blob whose name is the SHA-256 of its content, compressed;
// what is read is compared with it. A chunk is there as long as an index has it: how many do is counted in memory, and counted anew from
// the indexes when the store is opened. What a process that was killed left, Sweep removes.
package chunks
