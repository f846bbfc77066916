// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

// Headers of requests that may be repeated.
const (
	// IdempotencyKey of a request has it begin nothing twice, however often it is sent.
	IdempotencyKey = "Idempotency-Key"
	// IdempotentReplayed is "true" in an answer about what an earlier request with the same
	// key has begun or made.
	IdempotentReplayed = "Idempotent-Replayed"
)
