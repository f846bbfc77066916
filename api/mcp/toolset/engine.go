// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolset

import (
	"context"
	"io"
	"syscall"
	"time"

	"sandpit.dev/access"
	"sandpit.dev/engine"
	"sandpit.dev/image"
	"sandpit.dev/sandbox"
)

// Engine is what the tools need of the engine; *engine.Engine has it. Every
// method checks the caller's rights.
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
	CreateSnapshot(ctx context.Context, c access.Caller, ref string, r engine.SnapshotRequest) (*sandbox.Snapshot, error)
	Snapshots(context.Context, access.Caller, engine.SnapshotsRequest) (engine.SnapshotPage, error)
	DeleteSnapshot(ctx context.Context, c access.Caller, of, snapshot string) error
	Rollback(ctx context.Context, c access.Caller, ref, to string) (*sandbox.Sandbox, error)
	Fork(ctx context.Context, c access.Caller, ref string, r engine.ForkRequest) ([]*sandbox.Sandbox, error)
	Diff(ctx context.Context, c access.Caller, ref string, r engine.DiffRequest) (sandbox.Changes, error)
	CreateVolume(context.Context, access.Caller, engine.VolumeRequest) (engine.VolumeInfo, error)
	Volumes(context.Context, access.Caller) ([]engine.VolumeInfo, error)
	DeleteVolume(ctx context.Context, c access.Caller, ref string) error
	Activity(ctx context.Context, c access.Caller, ref string, q engine.ActivityRequest) (events []*sandbox.Event, next string, err error)
	Images(context.Context, access.Caller) ([]image.Status, error)
	BuildImage(ctx context.Context, c access.Caller, name string) (image.Status, error)
	Departed(ctx context.Context, c access.Caller, id string) (*sandbox.Event, error)
	NetworkLog(ctx context.Context, c access.Caller, ref string) (engine.NetworkLog, error)
	Info(context.Context, access.Caller) (engine.Info, error)
	Networks() []sandbox.NetworkMode
	InForce(sandbox.NetworkPolicy) sandbox.NetworkPolicy
	Secrets(ctx context.Context, c access.Caller, ref string) ([]sandbox.Secret, error)
	Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(sandbox.Frame) error) (engine.ExecResult, error)
	StartProcess(ctx context.Context, c access.Caller, ref string, r engine.StartRequest) (sandbox.Process, error)
	Process(ctx context.Context, c access.Caller, ref, processID string) (sandbox.Process, error)
	ListProcesses(ctx context.Context, c access.Caller, ref string, q engine.ProcessQuery) (engine.ProcessPage, error)
	WaitProcess(ctx context.Context, c access.Caller, ref, processID string, wait time.Duration) (sandbox.Process, error)
	Follow(ctx context.Context, c access.Caller, ref, processID string, r engine.FollowRequest) (*engine.Following, error)
	WriteInput(ctx context.Context, c access.Caller, ref, processID string, r engine.InputRequest) (sandbox.InputTaken, error)
	SignalProcess(ctx context.Context, c access.Caller, ref, processID string, sig syscall.Signal, tree bool) error
	ResizeProcess(ctx context.Context, c access.Caller, ref, processID string, cols, rows int) error
	KillProcess(ctx context.Context, c access.Caller, ref, processID string) error
	ReadFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.ReadFileOptions) (sandbox.FileInfo, io.ReadCloser, error)
	WriteFile(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o sandbox.WriteFileOptions) (info sandbox.FileInfo, created bool, err error)
	SearchFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.SearchFilesOptions) (dir sandbox.FileInfo, found []sandbox.FileMatch, end sandbox.SearchEnd, err error)
	StatFile(ctx context.Context, c access.Caller, ref, path, user string) (sandbox.FileInfo, error)
	MakeDir(ctx context.Context, c access.Caller, ref, path string, o sandbox.MakeDirOptions) error
	MoveFile(ctx context.Context, c access.Caller, ref, from, to string, o sandbox.MoveFileOptions) error
	RemoveFile(ctx context.Context, c access.Caller, ref, path string, o sandbox.RemoveFileOptions) error
	Ports(ctx context.Context, c access.Caller, ref string) (ports []sandbox.Port, truncated bool, err error)
	CreatePreview(ctx context.Context, c access.Caller, ref string, port int, expires time.Duration) (engine.Preview, error)
	WatchFiles(ctx context.Context, c access.Caller, ref string, r engine.WatchRequest, sink func([]sandbox.FileEvent) error) (engine.WatchEnd, error)
	MostCommandTime() time.Duration
	ListFiles(ctx context.Context, c access.Caller, ref, path string, o sandbox.ListFilesOptions) (files []sandbox.FileInfo, truncated bool, err error)
}
