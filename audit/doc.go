// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package audit is the form of the audit log: what a row says, how rows are chained and signed, and the file that
// an export is.
//
// Each server that writes has a chain of its own. A row is a line of JSON, its body, with the number of the row in the
// chain; its hash is the SHA-256 of a fixed prefix, the hash of the row before it and the body. So a row that is
// changed, removed, added or moved is found by whoever knows a later hash. A checkpoint is the number and the
// hash of a row with the time, signed by the server's Ed25519 key: a start says where the rows begin after older ones
// were deleted, a head what the newest row was.
//
// Who has both the records and the key can write another log that verifies. Against that helps what is kept
// elsewhere: an export, or a head, see [Expect].
package audit
