// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/gitops"
	"sandpit.dev/api/rest/idempotency"
)

// git returns the operations on repositories. What git has done is in the answer that is kept; what it makes has no record,
// and where a crash takes the answer the second finds it in the sandbox.
func (a *API) git() []httpapi.Operation {
	ops := gitops.Operations(a.Git)
	for i := range ops {
		if ops[i].Method == "POST" {
			ops[i] = ops[i].Extend(idempotency.Making())
		}
	}
	return ops
}
