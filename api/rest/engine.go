// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"io"
	"syscall"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/image"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// Engine is what this coat asks for; *engine.Engine is one. The ref that most
// methods take is a sandbox's id or key.
type Engine interface {
	Create(context.Context, access.Caller, engine.CreateRequest) (s *sandbox.Sandbox, created bool, err error)
	Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	List(context.Context, access.Caller, engine.SandboxesRequest) (engine.Page, error)
	Update(ctx context.Context, c access.Caller, ref string, p engine.Patch) (*sandbox.Sandbox, error)
	Start(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Stop(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Pause(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Resume(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Restart(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Delete(ctx context.Context, c access.Caller, ref string) error

	// A snapshot is named within a sandbox, or with of empty by itself.
	CreateSnapshot(ctx context.Context, c access.Caller, ref string, r engine.SnapshotRequest) (*sandbox.Snapshot, error)
	Snapshots(context.Context, access.Caller, engine.SnapshotsRequest) (engine.SnapshotPage, error)
	Snapshot(ctx context.Context, c access.Caller, of, snapshot string) (*sandbox.Snapshot, error)
	DeleteSnapshot(ctx context.Context, c access.Caller, of, snapshot string) error
	ExportSnapshot(ctx context.Context, c access.Caller, of, snapshot string, w io.Writer) error
	ImportSnapshot(ctx context.Context, c access.Caller, r io.Reader, o engine.ImportRequest) (*sandbox.Snapshot, error)
	Rollback(ctx context.Context, c access.Caller, ref, to string) (*sandbox.Sandbox, error)
	Fork(ctx context.Context, c access.Caller, ref string, r engine.ForkRequest) ([]*sandbox.Sandbox, error)
	Diff(ctx context.Context, c access.Caller, ref string, r engine.DiffRequest) (sandbox.Changes, error)

	CreateVolume(context.Context, access.Caller, engine.VolumeRequest) (engine.VolumeInfo, error)
	Volumes(context.Context, access.Caller) ([]engine.VolumeInfo, error)
	Volume(ctx context.Context, c access.Caller, ref string) (engine.VolumeInfo, error)
	DeleteVolume(ctx context.Context, c access.Caller, ref string) error
	SetSecret(ctx context.Context, c access.Caller, ref string, r engine.SecretRequest) (sandbox.Secret, error)
	Secrets(ctx context.Context, c access.Caller, ref string) ([]sandbox.Secret, error)
	Secret(ctx context.Context, c access.Caller, ref, name string) (sandbox.Secret, error)
	DeleteSecret(ctx context.Context, c access.Caller, ref, name string) error

	Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error)
	CreateExec(ctx context.Context, c access.Caller, in engine.CreateRequest, r engine.ExecRequest, found func(engine.Place), sink func(sandbox.Frame) error) (engine.Place, engine.ExecResult, error)
	// ExecAgain, ProcessAgain and EverRan tell what became of what an earlier request began.
	ExecAgain(ctx context.Context, c access.Caller, of sandbox.ID, processID string, r engine.ExecRequest, sink func(sandbox.Frame) error) (res engine.ExecResult, began bool, err error)
	ProcessAgain(ctx context.Context, c access.Caller, of sandbox.ID, processID string) (rec sandbox.Process, began bool, err error)
	EverRan(ctx context.Context, c access.Caller, id sandbox.ID) (bool, error)
	Process(ctx context.Context, c access.Caller, ref, processID string) (sandbox.Process, error)
	ListProcesses(ctx context.Context, c access.Caller, ref string, q engine.ProcessQuery) (engine.ProcessPage, error)
	StartProcess(ctx context.Context, c access.Caller, ref string, r engine.StartRequest) (sandbox.Process, error)
	WaitProcess(ctx context.Context, c access.Caller, ref, processID string, wait time.Duration) (sandbox.Process, error)
	Follow(ctx context.Context, c access.Caller, ref, processID string, r engine.FollowRequest) (*engine.Following, error)
	WriteInput(ctx context.Context, c access.Caller, ref, processID string, r engine.InputRequest) (sandbox.InputTaken, error)
	SignalProcess(ctx context.Context, c access.Caller, ref, processID string, sig syscall.Signal, tree bool) error
	ResizeProcess(ctx context.Context, c access.Caller, ref, processID string, cols, rows int) error
	KillProcess(ctx context.Context, c access.Caller, ref, processID string) error
	Terminal(ctx context.Context, c access.Caller, ref string, r engine.TerminalRequest) (*engine.Terminal, error)

	Networks() []sandbox.NetworkMode
	Most() sandbox.Limits
	NetworkLog(ctx context.Context, c access.Caller, ref string) (engine.NetworkLog, error)
	Ports(ctx context.Context, c access.Caller, ref string) (ports []sandbox.Port, truncated bool, err error)
	DialPort(ctx context.Context, c access.Caller, ref string, port int) (*engine.PortConn, error)
	CreatePreview(ctx context.Context, c access.Caller, ref string, port int, expires time.Duration) (engine.Preview, error)

	ReadFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ReadFileOptions) (sandbox.FileInfo, io.ReadCloser, error)
	WriteFile(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o sandbox.WriteFileOptions) (info sandbox.FileInfo, created bool, err error)
	StatFile(ctx context.Context, c access.Caller, ref, path, user string) (sandbox.FileInfo, error)
	EachFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ListFilesOptions, each func(sandbox.FileInfo) error) (truncated bool, err error)
	MakeDir(ctx context.Context, c access.Caller, ref, path string, o sandbox.MakeDirOptions) error
	MoveFile(ctx context.Context, c access.Caller, ref, from, to string, o sandbox.MoveFileOptions) error
	RemoveFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.RemoveFileOptions) error
	WatchFiles(ctx context.Context, c access.Caller, ref string, r engine.WatchRequest, sink func([]sandbox.FileEvent) error) (engine.WatchEnd, error)

	Activity(ctx context.Context, c access.Caller, ref string, q engine.ActivityRequest) (events []*sandbox.Event, next string, err error)
	Images(context.Context, access.Caller) ([]image.Status, error)
	BuildImage(ctx context.Context, c access.Caller, name string) (image.Status, error)
	Info(context.Context, access.Caller) (engine.Info, error)
}

// Runs is what this coat asks runs for; *runs.Runner is one. A run is named by its id.
type Runs interface {
	Start(context.Context, access.Caller, runs.Request) (*sandbox.Run, error)
	Get(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error)
	List(context.Context, access.Caller, runs.ListRequest) (runs.Page, error)
	Await(ctx context.Context, c access.Caller, id string, wait time.Duration) (*sandbox.Run, error)
	Cancel(ctx context.Context, c access.Caller, id string) (*sandbox.Run, error)
	Events(ctx context.Context, c access.Caller, id string, after int64, wait time.Duration) (*sandbox.Run, []*sandbox.RunEvent, error)
	Streams(ctx context.Context, c access.Caller, id string) ([]runs.Streams, error)
}

// Code is what this coat asks contexts of code and shells for; *code.Service is one. CodeAgain tells
// what became of a cell that an earlier request began.
type Code interface {
	CreateShell(ctx context.Context, c access.Caller, ref string, r code.ShellRequest) (code.Context, error)
	Shells(ctx context.Context, c access.Caller, ref string) ([]code.Context, error)
	Shell(ctx context.Context, c access.Caller, ref, name string) (code.Context, error)
	DeleteShell(ctx context.Context, c access.Caller, ref, name string) error
	InterruptShell(ctx context.Context, c access.Caller, ref, name string) error
	ShellExec(ctx context.Context, c access.Caller, ref, name string, r engine.ExecRequest, sink func(sandbox.Frame) error) (code.ShellResult, error)
	ShellCommand(ctx context.Context, c access.Caller, ref, name, id string, wait time.Duration) (code.ShellResult, error)

	RunCode(ctx context.Context, c access.Caller, ref string, r code.Request, sink *code.Sink) (code.Result, error)
	CreateContext(ctx context.Context, c access.Caller, ref string, r code.ContextRequest) (code.Context, error)
	Contexts(ctx context.Context, c access.Caller, ref string) ([]code.Context, error)
	Context(ctx context.Context, c access.Caller, ref, id string) (code.Context, error)
	RestartContext(ctx context.Context, c access.Caller, ref, id string) (code.Context, error)
	InterruptContext(ctx context.Context, c access.Caller, ref, id string) error
	DeleteContext(ctx context.Context, c access.Caller, ref, id string) error
	CodeAgain(ctx context.Context, c access.Caller, of sandbox.ID, cellID string) (res code.Result, began bool, err error)
}

// verb is a method of the engine that makes something of a sandbox.
type verb = func(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)

// Tokens makes, lists and ends bearer tokens; *bearer.Authority does. It checks
// the caller's rights. An empty project is all that the caller manages.
type Tokens interface {
	Create(context.Context, access.Caller, bearer.NewToken) (access.Token, bearer.Secret, error)
	List(ctx context.Context, c access.Caller, project string) ([]*access.Token, error)
	Delete(ctx context.Context, c access.Caller, project, idOrName string) error
}
