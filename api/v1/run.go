// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// StartRun asks for a run: commands that run one after the other, independent of the client's
// connection.
type StartRun struct {
	Commands        []RunCommandSpec  `json:"commands" jsonschema:"1 to 100 commands, in order"`
	DefaultCwd      *string           `json:"default_cwd,omitempty" jsonschema:"absolute working directory of commands that name none; the default is /workspace, as root /root"`
	DefaultEnv      map[string]string `json:"default_env,omitempty" jsonschema:"variables of all commands, under their own"`
	AsUser          *string           `json:"as_user,omitempty" jsonschema:"an account of the sandbox, by name or number; the default is its own user"`
	TTLSeconds      *int64            `json:"ttl_seconds,omitempty" jsonschema:"delete the sandbox when unused for so long, 1 to 604800; of one that the run makes the default is 3600"`
	ContinueOnError bool              `json:"continue_on_error,omitempty" jsonschema:"run the rest after a failure; the run fails all the same"`
	LockSandbox     bool              `json:"lock_sandbox,omitempty" jsonschema:"wait until earlier runs with lock_sandbox of this sandbox have ended"`
	WaitSeconds     *float64          `json:"wait_seconds,omitempty" jsonschema:"answer when the run has ended, or after so long, 0 to 86400; the default is 0"`
}

// RunCommandSpec is one command of a run that is asked for.
type RunCommandSpec struct {
	Shell        *string           `json:"shell,omitempty" jsonschema:"shell text; give exactly one of it and argv"`
	Argv         []string          `json:"argv,omitempty" jsonschema:"program and arguments, without a shell"`
	Cwd          *string           `json:"cwd,omitempty" jsonschema:"absolute working directory"`
	Env          map[string]string `json:"env,omitempty" jsonschema:"variables"`
	TimeoutMS    *int64            `json:"timeout_ms,omitempty" jsonschema:"it is killed then, 1 to 86400000; the default is 120000"`
	AllowFailure bool              `json:"allow_failure,omitempty" jsonschema:"its failure does not fail the run"`
}

// Run is a batch of commands.
type Run struct {
	RunID          string       `json:"run_id"`
	Identifier     string       `json:"identifier" jsonschema:"the sandbox's key, or its id"`
	State          string       `json:"state" jsonschema:"queued, running, completed, failed or canceled"`
	CreatedAt      time.Time    `json:"created_at"`
	StartedAt      *time.Time   `json:"started_at" jsonschema:"when its sandbox was ready; null: not yet"`
	EndedAt        *time.Time   `json:"ended_at" jsonschema:"null: not yet"`
	SandboxID      string       `json:"sandbox_container_id" jsonschema:"the sandbox's id; empty: it is not there yet"`
	SandboxName    string       `json:"sandbox_name" jsonschema:"what the sandbox is called by"`
	Commands       []RunCommand `json:"commands,omitempty" jsonschema:"not in lists"`
	Artifacts      []Artifact   `json:"artifacts" jsonschema:"files that were copied out after the run"`
	ArtifactsError string       `json:"artifacts_error,omitempty" jsonschema:"why they were not"`
	Error          string       `json:"error,omitempty" jsonschema:"why it failed"`
	StatusURL      string       `json:"status_url"`
	EventsURL      string       `json:"events_url"`
	ArtifactsURL   string       `json:"artifacts_url" jsonschema:"the directory of its artifacts"`
}

// RunCommand is one command of a run.
type RunCommand struct {
	Index           int               `json:"index"`
	Shell           string            `json:"shell,omitempty"`
	Argv            []string          `json:"argv,omitempty"`
	Cwd             string            `json:"cwd"`
	Env             map[string]string `json:"env,omitempty" jsonschema:"names of its own variables; the values are never shown"`
	AllowFailure    bool              `json:"allow_failure,omitempty"`
	Status          string            `json:"status" jsonschema:"queued, running, completed, failed or timed_out"`
	ExitCode        *int              `json:"exit_code,omitempty" jsonschema:"128 and the signal's number where one ended it"`
	Signal          string            `json:"signal,omitempty"`
	Cause           string            `json:"cause,omitempty" jsonschema:"what ended it, where it was not itself: timeout, oom, killed, …"`
	Error           string            `json:"error,omitempty" jsonschema:"why it could not begin"`
	ProcessID       string            `json:"process_id,omitempty"`
	StartedAt       *time.Time        `json:"started_at"`
	EndedAt         *time.Time        `json:"ended_at"`
	StdoutBytes     int64             `json:"stdout_bytes" jsonschema:"that it wrote"`
	StderrBytes     int64             `json:"stderr_bytes"`
	StdoutTruncated bool              `json:"stdout_truncated" jsonschema:"not all of it is here"`
	StderrTruncated bool              `json:"stderr_truncated"`
	Stdout          string            `json:"stdout"`
	Stderr          string            `json:"stderr"`
}

// Artifact is a file that was copied out of a sandbox after a run.
type Artifact struct {
	Path   string `json:"path" jsonschema:"below /artifacts"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	URL    string `json:"url" jsonschema:"where it is, with the token"`
}

// RunList is a page of runs, newest first.
type RunList struct {
	Items      []Run   `json:"items"`
	NextCursor *string `json:"next_cursor" jsonschema:"the cursor of the next page; null: this is the last"`
}

// CreateArtifactLink asks for a link to an artifact that needs no token.
type CreateArtifactLink struct {
	Path           string `json:"path" jsonschema:"of the artifact, as its run lists it"`
	ExpiresSeconds *int64 `json:"expires_seconds,omitempty" jsonschema:"60 to 604800; the default is 3600"`
}

// ArtifactLink is a link that anyone who has it can use.
type ArtifactLink struct {
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Names of a run's events, each with the type of its data. Their ids count from 1 on
// in each run.
const (
	RunEventStarted         = "run_started"         // RunStarted
	RunEventCommandStarted  = "command_started"     // CommandStarted
	RunEventCommandStdout   = "command_stdout"      // CommandOutput
	RunEventCommandStderr   = "command_stderr"      // CommandOutput
	RunEventCommandFinished = "command_finished"    // CommandFinished
	RunEventExtracted       = "artifacts_extracted" // ArtifactsExtracted
	RunEventFinished        = "run_finished"        // RunEnded; the last of one that worked
	RunEventFailed          = "run_failed"          // RunEnded; the last of any other
	RunEventError           = "error"               // RunStreamError; the stream broke off, and has no id
)

// RunStarted is the data of run_started.
type RunStarted struct {
	RunID      string    `json:"run_id"`
	Identifier string    `json:"identifier"`
	SandboxID  string    `json:"sandbox_container_id"`
	StartedAt  time.Time `json:"started_at"`
}

// CommandStarted is the data of command_started.
type CommandStarted struct {
	RunID     string    `json:"run_id"`
	Index     int       `json:"index"`
	Shell     string    `json:"shell,omitempty"`
	Argv      []string  `json:"argv,omitempty"`
	Cwd       string    `json:"cwd"`
	StartedAt time.Time `json:"started_at"`
}

// CommandOutput is the data of command_stdout and command_stderr.
type CommandOutput struct {
	RunID     string `json:"run_id"`
	Index     int    `json:"index"`
	Chunk     string `json:"chunk"`
	Base64    []byte `json:"chunk_base64,omitempty" jsonschema:"the exact bytes, where they are no UTF-8 by themselves"`
	Truncated bool   `json:"truncated" jsonschema:"more was written, and is not kept"`
}

// CommandFinished is the data of command_finished.
type CommandFinished struct {
	RunID           string    `json:"run_id"`
	Index           int       `json:"index"`
	ExitCode        int       `json:"exit_code"`
	Status          string    `json:"status"`
	Cause           string    `json:"cause,omitempty"`
	Error           string    `json:"error,omitempty"`
	StdoutTruncated bool      `json:"stdout_truncated"`
	StderrTruncated bool      `json:"stderr_truncated"`
	EndedAt         time.Time `json:"ended_at"`
}

// ArtifactsExtracted is the data of artifacts_extracted.
type ArtifactsExtracted struct {
	RunID string `json:"run_id"`
	Count int    `json:"count"`
}

// RunEnded is the data of run_finished and run_failed.
type RunEnded struct {
	RunID   string    `json:"run_id"`
	State   string    `json:"state"`
	EndedAt time.Time `json:"ended_at"`
	Error   string    `json:"error,omitempty"`
}

// RunStreamError is the data of error.
type RunStreamError struct {
	Error string `json:"error"`
}

// ArtifactList is the artifacts of a run, or those below a directory of it.
type ArtifactList struct {
	RunID      string     `json:"run_id"`
	Identifier string     `json:"identifier"`
	Artifacts  []Artifact `json:"artifacts"`
}
