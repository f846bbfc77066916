// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// AuditType is the media type of an export of the audit log: lines of JSON, of which the last signs all that are before it.
const AuditType = "application/vnd.sandpit.audit+jsonl"

// AuditPage is a page of the audit log, newest first.
type AuditPage struct {
	Items      []AuditRecord `json:"items"`
	NextCursor *string       `json:"next_cursor" jsonschema:"null: there are no more"`
}

// AuditRecord is a row of the audit log. Values of secrets are masked in it.
type AuditRecord struct {
	Writer  string    `json:"writer" jsonschema:"the server whose chain the row is in"`
	Seq     int64     `json:"seq" jsonschema:"its number there, without gaps"`
	At      time.Time `json:"at"`
	Type    string    `json:"type" jsonschema:"an event's type, or call (REST), tool (MCP), signin, token.created and the like"`
	Outcome string    `json:"outcome" jsonschema:"ok, failed, denied, or running: a command that has begun and whose end has a row of its own"`

	Project   *string `json:"project" jsonschema:"null: it concerns the server"`
	SandboxID *string `json:"sandbox_id" jsonschema:"it may be deleted"`
	TokenID   *string `json:"token_id" jsonschema:"null: the server's own admin token, or the server itself"`
	Actor     *string `json:"actor" jsonschema:"the token's name, or system"`
	Via       *string `json:"via"`
	Address   *string `json:"address" jsonschema:"the peer of the connection"`
	RequestID *string `json:"request_id"`
	Call      *string `json:"call" jsonschema:"the operation or the tool"`
	Path      *string `json:"path" jsonschema:"of the request, or of a file"`
	Status    *int    `json:"status" jsonschema:"of HTTP"`
	Code      *string `json:"code" jsonschema:"of an error"`
	Detail    *string `json:"detail"`

	ProcessID    *string           `json:"process_id"`
	ContextID    *string           `json:"context_id"`
	Language     *string           `json:"language"`
	Labels       map[string]string `json:"labels" jsonschema:"of the process that a command is"`
	Command      *string           `json:"command"`
	User         *string           `json:"user"`
	Cwd          *string           `json:"cwd"`
	ExitCode     *int              `json:"exit_code"`
	Signal       *string           `json:"signal"`
	Cause        *string           `json:"cause"`
	DurationMS   *float64          `json:"duration_ms"`
	Stdout       *AuditOutput      `json:"stdout" jsonschema:"null: it wrote nothing"`
	Stderr       *AuditOutput      `json:"stderr" jsonschema:"null: it wrote nothing"`
	FilesChanged []FileChange      `json:"files_changed"`
	FilesTotal   int               `json:"files_changed_total"`
	To           *string           `json:"to" jsonschema:"of a move"`
	Bytes        *int64            `json:"bytes"`
}

// AuditOutput is what a command wrote to a stream.
type AuditOutput struct {
	Bytes  int64   `json:"bytes"`
	SHA256 *string `json:"sha256" jsonschema:"of all of it, in hex; null where it is not known"`
	First  string  `json:"first" jsonschema:"its beginning, at most 2 KiB; bytes that are not UTF-8 are replaced"`
	Last   string  `json:"last" jsonschema:"its end, of what first leaves out; at most 2 KiB"`
}

// AuditReport is what is true of an audit log.
type AuditReport struct {
	Key      string       `json:"key" jsonschema:"that it is signed by: ed25519: and base64"`
	Complete bool         `json:"complete" jsonschema:"no row was left out by a filter"`
	Rows     int64        `json:"rows"`
	From     *time.Time   `json:"from" jsonschema:"when the oldest row is of"`
	To       *time.Time   `json:"to"`
	Chains   []AuditChain `json:"chains"`
	Altered  []int64      `json:"altered" jsonschema:"the numbers of rows that say that the log was found changed"`
}

// AuditChain is what was found of the rows of a server.
type AuditChain struct {
	Writer string `json:"writer"`
	From   int64  `json:"from" jsonschema:"the number of the oldest row that is kept"`
	To     int64  `json:"to"`
	Hash   string `json:"hash" jsonschema:"of the newest: keep WRITER:NUMBER:HASH somewhere else, and sandpit audit verify --expect finds whether the log still has it"`
}

// PruneAudit says which rows of the audit log are to be deleted.
type PruneAudit struct {
	Before time.Time `json:"before" jsonschema:"rows before this time"`
	DryRun bool      `json:"dry_run,omitempty" jsonschema:"delete nothing, and say how many there are"`
}

// AuditPruned is how many rows were deleted, or would be.
type AuditPruned struct {
	Rows   int  `json:"rows"`
	DryRun bool `json:"dry_run"`
}

// ExecutionLogPage is a page of what ran in sandboxes, as the MCP Gateway has it.
type ExecutionLogPage struct {
	Items  []ExecutionLog `json:"items"`
	Total  int            `json:"total"`
	Limit  int            `json:"limit"`
	Offset int            `json:"offset"`
}

// ExecutionLog is one thing that ran, or was done, in a sandbox.
type ExecutionLog struct {
	ID           string       `json:"id"`
	SandboxID    string       `json:"sandbox_id"`
	UserID       string       `json:"user_id" jsonschema:"the project"`
	UserName     string       `json:"user_name" jsonschema:"the token's name"`
	SourceType   string       `json:"source_type" jsonschema:"sandbox"`
	ToolName     string       `json:"tool_name" jsonschema:"what was done: exec, code, file.upload, and the like"`
	Status       string       `json:"status" jsonschema:"success, error, denied or running"`
	Command      *string      `json:"command"`
	ExitCode     *int         `json:"exit_code"`
	Stdout       string       `json:"stdout" jsonschema:"the beginning and the end of it"`
	Stderr       string       `json:"stderr"`
	DurationMS   *float64     `json:"duration_ms"`
	FilesChanged []FileChange `json:"files_changed"`
	CreatedAt    time.Time    `json:"created_at"`
	RequestID    *string      `json:"request_id"`
}
