// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The states of a task, in the protocol's words.
const (
	taskWorking   = "working"
	taskInput     = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// errTaskCancelled is why the call of a task was ended.
var errTaskCancelled = errors.New("the task was cancelled")

// Task is a call of a tool that continues after its request was answered. Before that it is an
// ordinary call.
type Task struct {
	id, owner string // the id is set for good when it begins
	created   time.Time
	stop      context.CancelCauseFunc // of the call
	stood     chan struct{}           // closed by the first StandFor

	mu      sync.Mutex
	updated time.Time
	status  string // "": it is not a task yet
	stands  string // the id by which the next server finds what it stands for; may be ""
	message string // the last line of output
	inputs  mcp.InputRequestMap
	given   mcp.InputResponseMap
	resume  chan struct{} // closed when all inputs are given
	result  *mcp.CallToolResult
	err     *jsonrpc.Error
	ended   time.Time
}

type taskKey struct{}

func taskOf(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

// Begun reports whether the call has outlived its request: then it no longer belongs to a session
// or a connection. A nil task has not.
func (t *Task) Begun() bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status != ""
}

// begunBefore is Begun by then. A nil task was not.
func (t *Task) begunBefore(then time.Time) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status != "" && t.created.Before(then)
}

// StandFor names the work that continues if the server ends: the next server finds it by the
// task's id. It has no effect on a task that has begun, or on nil.
func (t *Task) StandFor(id string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status != "" {
		return
	}
	if t.stands == "" {
		close(t.stood)
	}
	t.stands = id
}

// lasting is that id.
func (t *Task) lasting() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stands
}

// begin turns the call into a task.
func (t *Task) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created = time.Now()
	t.updated, t.status = t.created, taskWorking
}

// Say sets the last line of output.
func (t *Task) Say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.message != line {
		t.message, t.updated = line, time.Now()
	}
}

// ask waits until the client has sent what a call needs. It is false when the call was ended
// before.
func (t *Task) ask(ctx context.Context, inputs mcp.InputRequestMap) (mcp.InputResponseMap, bool) {
	t.mu.Lock()
	t.status, t.updated = taskInput, time.Now()
	t.inputs, t.given, t.resume = maps.Clone(inputs), make(mcp.InputResponseMap), make(chan struct{})
	resume := t.resume
	t.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, false
	case <-resume:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.given, true
}

// give takes the client's responses. Those that were not asked for are ignored. An invalid
// response is an error.
func (t *Task) give(responses map[string]json.RawMessage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status != taskInput {
		return nil
	}
	given := make(mcp.InputResponseMap)
	for name, raw := range responses {
		if _, asked := t.inputs[name]; !asked {
			continue
		}
		// The SDK reads a map only.
		one, err := json.Marshal(map[string]json.RawMessage{name: raw})
		if err == nil {
			var m mcp.InputResponseMap
			if err = json.Unmarshal(one, &m); err == nil {
				maps.Copy(given, m)
			}
		}
		if err != nil {
			return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: clip(err.Error())}
		}
	}
	for name, r := range given {
		delete(t.inputs, name)
		t.given[name] = r
		t.updated = time.Now()
	}
	if len(t.inputs) == 0 {
		t.status = taskWorking
		close(t.resume)
	}
	return nil
}

// cancel ends the call. One that has ended stays as it is.
func (t *Task) cancel(why error) { t.stop(why) }

// end records how the call ended; why is what cancelled it, or nil.
func (t *Task) end(o outcome, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = time.Now()
	t.updated, t.inputs = t.ended, nil
	result, ok := o.result.(*mcp.CallToolResult)
	switch {
	case errors.Is(why, errTaskCancelled):
		t.status, t.message = taskCancelled, ""
	case o.err != nil || !ok:
		t.status, t.err = taskFailed, protocolError(o.err)
	default:
		t.status, t.result = taskCompleted, result
	}
}

func protocolError(err error) *jsonrpc.Error {
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return e
	}
	// What it says may be of the server's inside.
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server has a fault; nothing is wrong with the call"}
}

// taskShown is a task on the wire.
type taskShown struct {
	mcp.ResultBase
	ResultType    string              `json:"resultType"`
	TaskID        string              `json:"taskId"`
	Status        string              `json:"status"`
	StatusMessage string              `json:"statusMessage,omitempty"`
	CreatedAt     string              `json:"createdAt"`
	LastUpdatedAt string              `json:"lastUpdatedAt"`
	TTLMs         int64               `json:"ttlMs"`
	PollMs        int64               `json:"pollIntervalMs"`
	InputRequests mcp.InputRequestMap `json:"inputRequests,omitempty"`
	Result        *mcp.CallToolResult `json:"result,omitempty"`
	Error         *taskError          `json:"error,omitempty"`
}

type taskError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// show returns the task as it is; whole: with what it ended with, or waits for.
func (t *Task) show(whole bool) *taskShown {
	t.mu.Lock()
	defer t.mu.Unlock()
	// It is kept for so long after its end, which is not known before.
	until := t.ended
	if until.IsZero() {
		until = time.Now()
	}
	out := &taskShown{
		ResultType: "task", TaskID: t.id, Status: t.status, StatusMessage: t.message,
		CreatedAt: t.created.UTC().Format(time.RFC3339Nano), LastUpdatedAt: t.updated.UTC().Format(time.RFC3339Nano),
		TTLMs: until.Add(taskKept).Sub(t.created).Milliseconds(), PollMs: taskPoll.Milliseconds(),
	}
	if !whole {
		return out
	}
	out.ResultType = "complete"
	out.InputRequests, out.Result = maps.Clone(t.inputs), t.result
	if e := t.err; e != nil {
		out.Error = &taskError{e.Code, e.Message, e.Data}
	}
	return out
}
