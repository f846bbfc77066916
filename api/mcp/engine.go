// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"io"

	"sandpit.dev/access"
	"sandpit.dev/agent"
	"sandpit.dev/engine"
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
	Delete(ctx context.Context, c access.Caller, ref string) error
	Exec(ctx context.Context, c access.Caller, ref string, r engine.ExecRequest, sink func(agent.Frame) error) (engine.ExecResult, error)
	RunCode(ctx context.Context, c access.Caller, ref string, r engine.CodeRequest, sink *engine.CodeSink) (engine.CodeResult, error)
	KillProcess(ctx context.Context, c access.Caller, ref, processID string) error
	ReadFile(ctx context.Context, c access.Caller, ref, path string, o agent.ReadOptions) (agent.FileInfo, io.ReadCloser, error)
	WriteFile(ctx context.Context, c access.Caller, ref, path string, r io.Reader, o agent.WriteOptions) (info agent.FileInfo, created bool, err error)
	ListFiles(ctx context.Context, c access.Caller, ref, path string, o agent.ListOptions) (files []agent.FileInfo, truncated bool, err error)
}
