// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/httpapi"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

const (
	maxCommand = 16 << 20 // bytes of a request with a command line or code
	maxOutput  = 16 << 20 // bytes of a command's output that an answer has
)

type execute struct {
	Ref  string `path:"id"`
	Body wire.Execute
}

// execute runs a command line, with stdout and stderr in one stream. It is killed if the client disconnects.
func (a *API) execute(ctx context.Context, c *httpapi.Call, in *execute) (wire.Executed, error) {
	b := &in.Body
	if strings.TrimSpace(b.Command) == "" {
		return wire.Executed{}, fault.InvalidField("command", "is empty")
	}
	if run, ok := codeThatDraws(b.Command); ok && httpapi.Given(b.Cwd) == "" && len(b.Envs)+len(b.Env) == 0 {
		run.Timeout = b.Timeout
		ran, err := a.codeRun(ctx, c, &codeRun{Ref: in.Ref, Body: run})
		if err == nil {
			return printed(ran)
		}
		if !fault.Is(err, fault.Unsupported) { // else it is a command as any other
			return wire.Executed{}, err
		}
	}
	limit, err := a.limit(b.Timeout)
	if err != nil {
		return wire.Executed{}, err
	}
	r := engine.ExecRequest{
		Shell: b.Command, Cwd: httpapi.Given(b.Cwd), Env: b.Envs, Timeout: limit, MaxStdout: maxOutput, MergeOutput: true, KillOnDisconnect: true, Room: c.Room,
	}
	if r.Env == nil {
		r.Env = b.Env
	}
	res, err := a.Commands.Exec(ctx, c.Caller, in.Ref, r, nil)
	if err != nil {
		return wire.Executed{}, err
	}
	if res.Cause == sandbox.CauseTimeout {
		return wire.Executed{}, timedOut(limit)
	}
	text := string(res.Stdout)
	if res.StdoutTruncated {
		text += fmt.Sprintf("\n[only the first %d of %d bytes are shown]", len(res.Stdout), res.StdoutBytes)
	}
	return wire.Executed{ExitCode: res.ExitCode, Result: text}, nil
}

// timedOut returns the error of a command that exceeded its time limit. Clients look for the word timeout in it.
func timedOut(limit time.Duration) error {
	return guard.WithStatus(http.StatusRequestTimeout, fault.New(fault.Timeout, "command execution timeout: it was ended after %v", limit).
		WithReason(wire.CodeExecutionTimeout).WithRemedy("give it a longer timeout, or run it in a session with runAsync"))
}

// limit returns a time limit, given in seconds. Without one, and for 0, it is the longest that the server allows.
func (a *API) limit(seconds *float64) (time.Duration, error) {
	most := a.Server.MostCommandTime()
	if seconds == nil || *seconds == 0 {
		return most, nil
	}
	if s := *seconds; !(s > 0 && s <= most.Seconds()) {
		return 0, fault.InvalidField("timeout", "%g is outside 0 to %g seconds", s, most.Seconds())
	}
	return time.Duration(*seconds * float64(time.Second)), nil
}
