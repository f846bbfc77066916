// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package wire has the objects that Daytona's clients send and read, as their published descriptions have them (openapi-specs of
// daytona/clients, Apache-2.0). It knows no engine and no HTTP. "Daytona" stands for what these clients are compatible with,
// and for nothing else.
//
// Python's clients refuse an object in which a required field is missing or of another type, and Go's one without a required
// key: fields without omitempty are always there. Unknown fields are ignored both ways. Timestamps are texts in RFC 3339.
package wire
