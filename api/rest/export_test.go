// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/idempotency"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

// CreateRequest makes the engine's request as the route does.
func CreateRequest(b *v1.CreateSandbox) (engine.CreateRequest, error) {
	return createRequest(new(httpapi.Spellings), b, sandbox.DefaultSizes())
}

// Posts returns of every operation that is a POST whether it takes an idempotency key, and why
// if not; and of all others that do.
func (a *API) Posts() map[string]string {
	out := make(map[string]string)
	for _, o := range a.operations() {
		switch how := o.Extension.(type) {
		case idempotency.Keying:
			if out[o.ID] = ""; o.Method == "POST" {
				out[o.ID] = "takes a key"
			}
		case idempotency.Keyless:
			out[o.ID] = string(how)
		default:
			if o.Method == "POST" {
				out[o.ID] = ""
			}
		}
	}
	return out
}

// ContentOperations are those that the audit log tells of though they are GETs.
func ContentOperations() []string { return contentOperations() }
