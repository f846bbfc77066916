// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"sandpit.dev/api/daytona/wire"
	"sandpit.dev/api/guard"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// classes are the statuses for which clients raise a class of their own; any other is the bare base class.
var classes = []int{400, 401, 403, 404, 408, 409, 410, 422, 429, 500, 502, 503, 504}

func TestEveryCodeHasAClass(t *testing.T) {
	for _, code := range fault.Codes() {
		if got := status(fault.New(code, "x")); code != fault.Canceled && !slices.Contains(classes, got) {
			t.Errorf("%s is %d, for which clients have no class", code, got)
		}
	}
	for disk, want := range map[fault.Disk]int{fault.SandboxDisk: 422, fault.StoreDisk: 503, fault.HostDisk: 503, fault.RecordsDisk: 503} {
		if got := status(fault.NoSpace(disk, nil, "full")); got != want {
			t.Errorf("a full disk of %s is %d, not %d", disk, got, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, path string
		err        error
		want       wire.Problem
	}{
		{"a field", "/daytona/sandbox", fault.InvalidField("cpu", "is 0").WithRemedy("send 1"), wire.Problem{StatusCode: 400, Message: "cpu: is 0; send 1", Error: "Bad Request", Code: "INVALID", Source: wire.SourceAPI}},
		{"the toolbox", "/daytona/toolbox/x/files", fault.New(fault.NotFound, "none").WithReason(wire.CodeFileNotFound), wire.Problem{StatusCode: 404, Message: "none", Error: "Not Found", Code: wire.CodeFileNotFound, Source: wire.SourceDaemon}},
		{"a reason of ours", "/daytona/sandbox", fault.New(fault.Conflict, "no").WithReason("git_conflict"), wire.Problem{StatusCode: 409, Message: "no", Error: "Conflict", Code: "CONFLICT", Source: wire.SourceAPI}},
		{"no sandbox", "/daytona/sandbox/x", fault.New(fault.NotFound, "none").WithReason(sandbox.ReasonNoSandbox), wire.Problem{StatusCode: 404, Message: "sandbox not found: none", Error: "Not Found", Code: "NOT_FOUND", Source: wire.SourceAPI}},
		{"nobody", "/daytona/sandbox", fault.New(fault.Unauthenticated, "no token"), wire.Problem{StatusCode: 401, Message: "unauthorized: no token", Error: "Unauthorized", Code: "UNAUTHENTICATED", Source: wire.SourceAPI}},
		{"too many", "/daytona/sandbox", fault.New(fault.Exhausted, "3 of 3"), wire.Problem{StatusCode: 429, Message: "limit exceeded: 3 of 3", Error: "Too Many Requests", Code: "EXHAUSTED", Source: wire.SourceAPI}},
		{"a finer status", "/daytona/toolbox/x/process", guard.WithStatus(http.StatusGone, fault.New(fault.State, "over")), wire.Problem{StatusCode: 410, Message: "over", Error: "Gone", Code: "STATE", Source: wire.SourceDaemon}},
		{"a bug", "/daytona/sandbox", errors.New("a password is in here"), wire.Problem{StatusCode: 500, Message: "internal error; look for the request's id in the server's log", Error: "Internal Server Error", Code: "INTERNAL", Source: wire.SourceAPI}},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, c.path, nil)
		Answer(w, r, c.err)
		var got wire.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if w.Code != c.want.StatusCode || w.Header().Get("Content-Type") != "application/json" || got.Timestamp.IsZero() {
			t.Errorf("%s: %d, %v, %s", c.name, w.Code, w.Header(), w.Body)
		}
		c.want.Path, c.want.Method, c.want.Timestamp = c.path, http.MethodPost, got.Timestamp
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
