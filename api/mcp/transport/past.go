// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/fault"
)

// Records know what tools started that outlives the server.
type Records interface {
	// Recorded reports whether what a tool starts is on record.
	Recorded(tool string) bool
	// Past returns the outcome of an earlier server's task with that id, by the record of what it
	// stood for. It returns nil, fault.NotFound or fault.Invalid if the caller of the request
	// started no such task.
	Past(ctx context.Context, req mcp.Request, id string) (*PastTask, error)
}

// PastTask is a task of an earlier server.
type PastTask struct {
	Created, Updated time.Time
	Ended            time.Time
	Message          string
	Cancelled        bool
	Result           *mcp.CallToolResult         // nil: it goes on, or was cancelled
	Stop             func(context.Context) error // ends what it stands for
}

// stopBound bounds the end of what a task stands for.
const stopBound = 30 * time.Second

// revive answers about a task of an earlier server. was is false if the task does not exist, or
// ended too long ago.
func revive(ctx context.Context, req mcp.Request, method, id string, records Records) (r mcp.Result, was bool, err error) {
	p, err := records.Past(ctx, req, id)
	switch {
	case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) || err == nil && p == nil:
		return nil, false, nil
	case err != nil:
		return nil, true, taskFault(err)
	case !p.Ended.IsZero() && time.Since(p.Ended) > taskKept:
		return nil, false, nil
	}
	switch {
	case method == methodTaskGet:
		return p.task(id).show(true), true, nil
	case method == methodTaskCancel && p.working():
		limited, cancel := context.WithTimeout(ctx, stopBound)
		defer cancel()
		if err := p.Stop(limited); err != nil && !fault.Is(err, fault.NotFound) {
			return nil, true, taskFault(err)
		}
	}
	return &taskDone{ResultType: "complete"}, true, nil
}

// working reports whether it goes on.
func (p *PastTask) working() bool { return !p.Cancelled && p.Result == nil }

// task is p as a task of this server.
func (p *PastTask) task(id string) *Task {
	t := &Task{id: id, created: p.Created, updated: p.Updated, ended: p.Ended, status: taskWorking, message: p.Message, result: p.Result}
	switch {
	case p.Cancelled:
		t.status = taskCancelled
	case !p.working():
		t.status = taskCompleted
	}
	return t
}

// taskFault describes what could not be done about a task.
func taskFault(err error) error {
	e := fault.As(err)
	if e.Code == fault.Internal || errors.Is(err, context.Canceled) {
		return protocolError(nil)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: e.Message}
}
