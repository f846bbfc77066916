// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/access"
)

// The extension of the protocol for long calls: a client that declares it gets a task in place of
// the answer when a call has taken some time, and polls that until it has ended. A task does not
// depend on the client's connections, and belongs to the token that began it. It is kept in
// memory: most tasks end with the server, though the commands that they wait for do not. A task
// that stands for a command or a run has an id that says so, and the next server answers for it
// from the record of that.
const (
	ExtensionTasks   = "io.modelcontextprotocol/tasks"
	methodTaskGet    = "tasks/get"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
	methodCallTool   = "tools/call"
)

// Bounds of tasks. If there is no room for one, the call is answered when it ends, as for a
// client without the extension.
const (
	taskAfter    = 10 * time.Second // how long a call takes before it becomes one
	taskKept     = time.Hour        // after its end
	taskPoll     = time.Second      // how often a client should ask
	taskRecord   = 20 * time.Second // how much longer a call may take until what it begins is on record
	tasksOfToken = 64
	tasksInAll   = 1024
)

// tasks are those in progress, and those that ended and are kept. It is safe for concurrent use.
type tasks struct {
	after          time.Duration
	ofToken, inAll int
	log            *slog.Logger
	wg             sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	all     map[string]*Task
	of      map[string]int // how many, by owner; calls that may become one count
	places  int            // of all
}

func newTasks(after time.Duration, log *slog.Logger) *tasks {
	return &tasks{
		after: after, ofToken: tasksOfToken, inAll: tasksInAll, log: log,
		all: make(map[string]*Task), of: make(map[string]int),
	}
}

// outcome is how a call ended.
type outcome struct {
	result mcp.Result
	err    error
}

// taskParams are those of the methods for tasks.
type taskParams struct {
	mcp.ParamsBase
	TaskID string `json:"taskId"`
	// InputResponses are decoded later, so that errors in them are reported precisely.
	InputResponses json.RawMessage `json:"inputResponses,omitempty"`
}

// taskDone is the answer to what changes a task.
type taskDone struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// serve lets a server offer tasks.
func (ts *tasks) serve(s *mcp.Server, records Records) {
	for _, method := range []string{methodTaskGet, methodTaskUpdate, methodTaskCancel} {
		// The middleware answers them, since only it learns who asks.
		_ = mcp.AddReceivingCustomMethod(s, method, func(context.Context, *mcp.ServerSession, *taskParams) (*taskDone, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the method has no caller"}
		}) // it refuses only the protocol's own names, and these are not
	}
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler { return ts.middleware(next, records) })
}

func (ts *tasks) middleware(next mcp.MethodHandler, records Records) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch r := req.(type) {
		case *mcp.CallToolRequest:
			owner, known := ownerOf(r.Extra)
			if method != methodCallTool || !known || !declares(r.ClientCapabilities()) {
				return next(ctx, method, req)
			}
			return ts.call(ctx, r, owner, next, records)
		case *mcp.ServerRequest[*taskParams]:
			owner, known := ownerOf(r.Extra)
			switch {
			case !known:
				return next(ctx, method, req)
			case !declares(r.ClientCapabilities()):
				return nil, undeclared(method)
			}
			return ts.answer(ctx, r, method, owner, records)
		}
		return next(ctx, method, req)
	}
}

func ownerOf(x *mcp.RequestExtra) (string, bool) {
	if x == nil || x.TokenInfo == nil {
		return "", false
	}
	c, ok := x.TokenInfo.Extra[extraCaller].(access.Caller)
	return Identity(c), ok
}

// declares reports whether a client supports tasks.
func declares(c *mcp.ClientCapabilities) bool {
	if c == nil {
		return false
	}
	_, ok := c.Extensions[ExtensionTasks]
	return ok
}

func undeclared(method string) error {
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: fmt.Sprintf("%s is for clients that declare the extension %s", method, ExtensionTasks),
		Data:    json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + ExtensionTasks + `":{}}}}`),
	}
}

// call calls a tool, and answers with a task when it takes long. Until then the
// call ends with its request.
func (ts *tasks) call(ctx context.Context, r *mcp.CallToolRequest, owner string, next mcp.MethodHandler, records Records) (mcp.Result, error) {
	if !ts.reserve(owner) {
		return next(ctx, methodCallTool, r)
	}
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &Task{id: rand.Text(), owner: owner, stop: stop, stood: make(chan struct{})}
	done := ts.start(context.WithValue(work, taskKey{}, t), r, next)
	long := time.NewTimer(ts.after)
	defer long.Stop()
	var stood <-chan struct{}
	for call := true; call; {
		select {
		case o := <-done:
			stop(nil)
			ts.release(owner)
			return o.result, o.err
		case <-ctx.Done():
			stop(context.Cause(ctx))
			o := <-done
			ts.release(owner)
			return o.result, o.err
		case <-stood:
			call = false
		case <-long.C:
			// Where the next server could answer for the task it is acknowledged once that one
			// would find it: a busy host takes its time until a command is on record.
			if call = stood == nil && records.Recorded(r.Params.Name); call {
				stood = t.stood
				long.Reset(taskRecord)
			}
		}
	}
	ts.keep(t)
	shown := t.show(false)
	go func() {
		defer ts.wg.Done() // keep has counted it
		ts.follow(context.WithValue(work, taskKey{}, t), t, r, next, done)
	}()
	return shown, nil
}

// start calls the tool, in a goroutine that ends with the call.
func (ts *tasks) start(ctx context.Context, r *mcp.CallToolRequest, next mcp.MethodHandler) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if v := recover(); v != nil {
				ts.log.ErrorContext(ctx, "a call panicked", "tool", r.Params.Name, "panic", v, "stack", string(debug.Stack()))
				o = outcome{err: protocolError(nil)}
			}
			done <- o
		}()
		o.result, o.err = next(ctx, methodCallTool, r)
	}()
	return done
}

// follow waits for the end of a task's call, and calls again when the client has sent what the
// tool asked for.
func (ts *tasks) follow(ctx context.Context, t *Task, r *mcp.CallToolRequest, next mcp.MethodHandler, done <-chan outcome) {
	defer t.stop(nil)
	for {
		o := <-done
		result, ok := o.result.(*mcp.CallToolResult)
		if o.err == nil && ok && len(result.InputRequests) > 0 && ctx.Err() == nil {
			if given, ok := t.ask(ctx, result.InputRequests); ok {
				p := *r.Params
				p.InputResponses, p.RequestState = given, result.RequestState
				again := *r
				again.Params = &p
				done = ts.start(ctx, &again, next)
				continue
			}
		}
		t.end(o, context.Cause(ctx))
		time.AfterFunc(taskKept, func() { ts.drop(t) })
		return
	}
}

// reserve reserves a place for a call that may become a task, if there is room.
func (ts *tasks) reserve(owner string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.stopped || ts.of[owner] >= ts.ofToken || ts.places >= ts.inAll {
		return false
	}
	ts.of[owner]++
	ts.places++
	return true
}

// release frees a place.
func (ts *tasks) release(owner string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.places--
	if ts.of[owner]--; ts.of[owner] == 0 {
		delete(ts.of, owner)
	}
}

// keep turns a call that has a place into a task.
func (ts *tasks) keep(t *Task) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.wg.Add(1)
	if id := t.lasting(); id != "" && ts.all[id] == nil { // two may wait for one run
		t.id = id
	}
	t.begin()
	ts.all[t.id] = t
	if ts.stopped {
		t.cancel(ErrStopping)
	}
}

// drop forgets a task that ended.
func (ts *tasks) drop(t *Task) {
	ts.mu.Lock()
	delete(ts.all, t.id)
	ts.mu.Unlock()
	ts.release(t.owner)
}

// answer answers a method for tasks.
func (ts *tasks) answer(ctx context.Context, r *mcp.ServerRequest[*taskParams], method, owner string, records Records) (mcp.Result, error) {
	p := r.Params
	if p == nil {
		p = &taskParams{}
	}
	ts.mu.Lock()
	t := ts.all[p.TaskID]
	ts.mu.Unlock()
	if t == nil {
		if res, was, err := revive(ctx, r, method, p.TaskID, records); was {
			return res, err
		}
	}
	if t == nil || t.owner != owner {
		return nil, &jsonrpc.Error{
			Code:    jsonrpc.CodeInvalidParams,
			Message: fmt.Sprintf("there is no task %q: it was kept for %s after its end, or until the server was restarted; its command, if it was one, is listed with the sandbox's processes", clip(p.TaskID), taskKept),
		}
	}
	switch method {
	case methodTaskUpdate:
		var given map[string]json.RawMessage
		if err := json.Unmarshal(p.InputResponses, &given); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "inputResponses is not an object: " + clip(err.Error())}
		}
		if err := t.give(given); err != nil {
			return nil, err
		}
	case methodTaskCancel:
		t.cancel(errTaskCancelled)
	default:
		return t.show(true), nil
	}
	return &taskDone{ResultType: "complete"}, nil
}

// close ends every task, and waits for that. Commands go on running.
func (ts *tasks) close() {
	ts.mu.Lock()
	ts.stopped = true
	for _, t := range ts.all {
		t.cancel(ErrStopping)
	}
	ts.mu.Unlock()
	ts.wg.Wait()
}
