// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds what travels over the wire of /v1 and /api/v1: the bodies of
// requests and answers, as JSON. It is the source of the OpenAPI document and
// of the clients.
//
// Names here are promises. A field may be added to an answer, and an optional one to a request;
// nothing is renamed, removed or changed in meaning.
//
// Three rules hold throughout. In an answer every field is always present, null if it has no
// value, unless its tag says omitempty. In a request a missing field and null are the same: the
// default. Where a field has two names, either may be sent, and both only if they agree.
//
// The package knows nothing of HTTP or of the engine: it is plain data.
package v1
