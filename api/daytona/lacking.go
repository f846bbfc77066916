// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import "sandpit.dev/api/daytona/lacking"

// lackingOperations are those that clients know and this server has not. What nobody calls but Daytona's own parts is not
// found.
func lackingOperations() []lacking.Operation {
	const (
		snapshots = "snapshots are not served to these clients yet"
		ssh       = "there is no SSH to sandboxes here"
	)
	const (
		useImage    = "begin with an image, fork a sandbox, or take a snapshot by POST /v1/sandboxes/ID/snapshots"
		useTerminal = "open a terminal: create_pty_session, or sandpit shell"
	)
	return []lacking.Operation{
		{Pattern: "GET,POST /snapshots", Why: snapshots, Remedy: useImage},
		{Pattern: "GET,DELETE /snapshots/{snapshot}", Why: snapshots, Remedy: useImage},
		{Pattern: "POST /snapshots/{snapshot}/activate", Why: snapshots, Remedy: useImage},
		{Pattern: "POST /snapshots/{snapshot}/deactivate", Why: snapshots, Remedy: useImage},
		{Pattern: "GET /snapshots/{snapshot}/build-logs-url", Why: snapshots, Remedy: useImage},
		{Pattern: "POST /sandbox/{id}/snapshot", Why: snapshots, Remedy: useImage},
		{Pattern: "GET /sandbox/{id}/build-logs-url", Why: "a create answers when its image is built, so that there is no log to follow"},
		{Pattern: "GET /object-storage/push-access", Why: "files for a build are not taken from these clients yet", Remedy: "build the image by sandpit image build"},
		{Pattern: "POST,DELETE /sandbox/{id}/ssh-access", Why: ssh, Remedy: useTerminal},
		{Pattern: "GET /sandbox/ssh-access/validate", Why: ssh, Remedy: useTerminal},
		{Pattern: "GET /sandbox/{id}/telemetry/{kind}", Why: "logs and traces of sandboxes are not collected for these clients", Remedy: "read the output of commands, or GET /v1/sandboxes/ID/activity"},
	}
}
