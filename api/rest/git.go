// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest/gitops"
	"sandpit.dev/api/rest/idempotency"
)

// git returns the operations on repositories.
func (a *API) git() []httpapi.Operation {
	ops := gitops.Operations(a.Git)
	for i := range ops {
		if ops[i].Method == "POST" {
			ops[i] = ops[i].Extend(idempotency.Keyless("git makes what it makes in the sandbox, where the second finds it"))
		}
	}
	return ops
}
