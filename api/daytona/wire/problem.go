// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "time"

// Sources of an error.
const (
	SourceAPI    = "DAYTONA_API"
	SourceDaemon = "DAYTONA_DAEMON"
	SourceProxy  = "DAYTONA_PROXY"
)

// Codes of errors of the toolbox for which clients have classes of their own.
const (
	CodeFileNotFound      = "FILE_NOT_FOUND"
	CodeFileAccessDenied  = "FILE_ACCESS_DENIED"
	CodeInvalidFilePath   = "INVALID_FILE_PATH"
	CodeFileReadFailed    = "FILE_READ_FAILED"
	CodeExecutionTimeout  = "PROCESS_EXECUTION_TIMEOUT"
	CodeProcessNotFound   = "PROCESS_NOT_FOUND"
	CodeSessionEnded      = "SESSION_ENDED"
	CodeCommandCompleted  = "COMMAND_ALREADY_COMPLETED"
	CodeGitAuthFailed     = "GIT_AUTH_FAILED"
	CodeGitRepoNotFound   = "GIT_REPO_NOT_FOUND"
	CodeGitBranchNotFound = "GIT_BRANCH_NOT_FOUND"
	CodeGitBranchExists   = "GIT_BRANCH_EXISTS"
	CodeGitPushRejected   = "GIT_PUSH_REJECTED"
	CodeGitDirty          = "GIT_DIRTY_WORKTREE"
	CodeGitConflict       = "GIT_MERGE_CONFLICT"
	CodeGitTransport      = "GIT_TRANSPORT_FAILED"
	CodeGitRemoteRejected = "GIT_REMOTE_REJECTED"
	CodeLSPNotInitialized = "LSP_SERVER_NOT_INITIALIZED"
)

// Problem is an error, on both planes.
type Problem struct {
	StatusCode int       `json:"statusCode"`
	Message    string    `json:"message"`
	Error      string    `json:"error"` // the status in words
	Code       string    `json:"code,omitempty"`
	Source     string    `json:"source"`
	Path       string    `json:"path"`
	Timestamp  time.Time `json:"timestamp"`
	Method     string    `json:"method"`
}
