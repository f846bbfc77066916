// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"net/http"

	"sandpit.dev/api/daytona/lacking"
)

// lackingOperations returns the operations that clients know and this server does not have.
func lackingOperations() []lacking.Operation {
	const desktop = "the sandbox's image has no desktop"
	return []lacking.Operation{
		{Pattern: "GET,POST,DELETE /computeruse/{rest...}", Why: desktop, Status: http.StatusServiceUnavailable},
		{Pattern: "POST /git/credentials", Why: "credentials are not kept in sandboxes here", Remedy: "give username and password with clone, push and pull"},
	}
}
