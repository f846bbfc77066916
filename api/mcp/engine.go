// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Engine is what the tools need of the engine; *engine.Engine has it. Every
// method checks the caller's rights.
type Engine interface {
	Create(context.Context, access.Caller, engine.CreateRequest) (s *sandbox.Sandbox, created bool, err error)
	Get(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	List(context.Context, access.Caller, store.SandboxQuery) (engine.Page, error)
	Update(ctx context.Context, c access.Caller, ref string, p engine.Patch) (*sandbox.Sandbox, error)
	Pause(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Resume(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Restart(ctx context.Context, c access.Caller, ref string) (*sandbox.Sandbox, error)
	Delete(ctx context.Context, c access.Caller, ref string) error
	CreateSnapshot(ctx context.Context, c access.Caller, ref string, r engine.SnapshotRequest) (*sandbox.Snapshot, error)
	Snapshots(context.Context, access.Caller, engine.SnapshotsRequest) (engine.SnapshotPage, error)
	DeleteSnapshot(ctx context.Context, c access.Caller, of, snapshot string) error
	Rollback(ctx context.Context, c access.Caller, ref, to string) (*sandbox.Sandbox, error)
	Fork(ctx context.Context, c access.Caller, ref string, r engine.ForkRequest) ([]*sandbox.Sandbox, error)
	Diff(ctx context.Context, c access.Caller, ref string, r engine.DiffRequest) (runtime.Changes, error)
	Info(context.Context, access.Caller) (engine.Info, error)
	Networks() []sandbox.NetworkMode
	Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(agent.Frame) error) (engine.ExecResult, error)
	RunCode(ctx context.Context, c access.Caller, ref string, r engine.CodeRequest, sink *engine.CodeSink) (engine.CodeResult, error)
	KillProcess(ctx context.Context, c access.Caller, ref, processID string) error
	ReadFile(ctx context.Context, c access.Caller, ref, path string, o agent.ReadOptions) (agent.FileInfo, io.ReadCloser, error)
	WriteFile(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o agent.WriteOptions) (info agent.FileInfo, created bool, err error)
	ListFiles(ctx context.Context, c access.Caller, ref, path string, o agent.ListOptions) (files []agent.FileInfo, truncated bool, err error)
}
