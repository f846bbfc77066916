// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import "sandpit.dev/api/daytona/lacking"

// lackingOperations returns the operations that clients know and this server does not have. Those that only Daytona's own console and
// runners call are 404.
func lackingOperations() []lacking.Operation {
	const (
		ssh = "there is no SSH to sandboxes here"
	)
	const (
		useTerminal = "open a terminal: create_pty_session, or sandpit shell"
	)
	return []lacking.Operation{
		{Pattern: "POST,DELETE /sandbox/{id}/ssh-access", Why: ssh, Remedy: useTerminal},
		{Pattern: "GET /sandbox/ssh-access/validate", Why: ssh, Remedy: useTerminal},
		{Pattern: "GET /sandbox/{id}/telemetry/{kind}", Why: "logs and traces of sandboxes are not collected for these clients", Remedy: "read the output of commands, or GET /v1/sandboxes/ID/activity"},
	}
}
