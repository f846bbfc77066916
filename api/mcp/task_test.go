// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"sandpit.dev/api/mcp"
	"sandpit.dev/sandbox"
)

const taskMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}},`

// shownTask is a task as clients see it.
type shownTask struct {
	ResultType, TaskID, Status, StatusMessage, CreatedAt, LastUpdatedAt string

	TTLMs          int64
	PollIntervalMs int64
	Result         *struct {
		IsError bool
		Content []struct{ Text string }
	}
}

// ask calls a method of the stateless era as a client that knows of tasks. An answer that a busy machine began before it was known
// has the status 200 whatever it says; ask returns that of the error that it carries.
func (h *house) ask(token, method, name, params string) (t shownTask, status int, body string) {
	h.t.Helper()
	resp, body := h.post(token, "", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+taskMeta+params+`}}`,
		map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": method, "Mcp-Name": name})
	var m struct {
		Result shownTask
		Error  *struct{ Code int }
	}
	data := body
	if _, after, ok := strings.Cut(body, "data: "); ok {
		data, _, _ = strings.Cut(after, "\n")
	}
	if err := json.Unmarshal([]byte(data), &m); err != nil {
		h.t.Fatalf("%s: %v in %s", method, err, body)
	}
	status = resp.StatusCode
	if m.Error != nil && strings.HasPrefix(body, ": keep-alive\n") {
		status = http.StatusBadRequest
	}
	return m.Result, status, body
}

func (h *house) runTask(t *testing.T, command string) shownTask {
	t.Helper()
	quoted, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	task, _, body := h.ask("t-alice", "tools/call", "run_command", `"name":"run_command","arguments":{"sandbox":"box","command":`+string(quoted)+`}`)
	if task.ResultType != "task" || task.TaskID == "" || task.Status != "working" {
		t.Fatalf("a long call: %s; want a task", body)
	}
	return task
}

// until asks for a task until it is as wanted.
func (h *house) until(t *testing.T, id string, want func(shownTask) bool) shownTask {
	t.Helper()
	for {
		task, _, _ := h.ask("t-alice", "tasks/get", id, `"taskId":"`+id+`"`)
		if want(task) {
			return task
		}
		h.changed(t)
	}
}

func TestAShortCallIsNoTask(t *testing.T) {
	t.Parallel()
	h := open(t) // where a call is one after 10 s, and not after some that a busy machine takes for any
	task, _, body := h.ask("t-alice", "tools/call", "list_sandboxes", `"name":"list_sandboxes","arguments":{}`)
	if task.ResultType != "complete" || task.TaskID != "" {
		t.Errorf("got %s", body)
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	h := open(t).again(func(o *mcp.Options) { o.TaskAfter = 100 * time.Millisecond })
	ok(t, h.alice(), "create_sandbox", arguments{"name": "box"})
	ended := func(s shownTask) bool { return s.Status != "working" }
	letGo := func() {
		if _, _, err := h.inside.WriteFile(t.Context(), callers["t-alice"], "box", "go", strings.NewReader(""), sandbox.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("ALongCallIsOneAndItsResultTheOrdinaryOne", func(t *testing.T) {
		task := h.runTask(t, "echo begun; while [ ! -e go ]; do sleep 0.01; done; rm go; echo the end; exit 3")
		if task.TTLMs < time.Hour.Milliseconds() || task.PollIntervalMs <= 0 || task.CreatedAt == "" {
			t.Errorf("the task is %+v", task)
		}
		h.until(t, task.TaskID, func(s shownTask) bool { return s.StatusMessage == "begun" })
		letGo()
		got := h.until(t, task.TaskID, ended)
		if got.Status != "completed" || got.Result == nil || got.Result.IsError || got.ResultType != "complete" {
			t.Fatalf("the end: %+v", got)
		}
		wantParts(t, got.Result.Content[0].Text, "exit 3", "begun\nthe end")
		// It stays, and to end it now changes nothing.
		h.ask("t-alice", "tasks/cancel", task.TaskID, `"taskId":"`+task.TaskID+`"`)
		if again, _, _ := h.ask("t-alice", "tasks/get", task.TaskID, `"taskId":"`+task.TaskID+`"`); again.Status != "completed" {
			t.Errorf("afterwards: %+v", again)
		}
	})

	t.Run("WhoDoesNotKnowOfThemGetsNone", func(t *testing.T) {
		call := strings.Replace(longCall(callMeta), "sleep 600", "sleep 0.3; echo slept", 1)
		if _, body := h.post("t-alice", "", call, modernCall); !strings.Contains(body, "slept") || strings.Contains(body, "taskId") {
			t.Errorf("got %s", body)
		}
		resp, body := h.post("t-alice", "", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{`+callMeta+`"taskId":"x"}}`,
			map[string]string{"Mcp-Protocol-Version": stateless, "Mcp-Method": "tasks/get", "Mcp-Name": "x"})
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "-32021") || !strings.Contains(body, "requiredCapabilities") {
			t.Errorf("%s, %s", resp.Status, body)
		}
	})

	t.Run("OneIsOfItsTokenOnly", func(t *testing.T) {
		task := h.runTask(t, "sleep 600")
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			for token, id := range map[string]string{"t-bob": task.TaskID, "t-reader": task.TaskID, "t-stranger": task.TaskID, "t-alice": "x"} {
				_, status, body := h.ask(token, method, id, `"taskId":"`+id+`","inputResponses":{}`)
				if status != http.StatusBadRequest || !strings.Contains(body, "-32602") || !strings.Contains(body, "there is no task") {
					t.Errorf("%s by %s: %d, %s", method, token, status, body)
				}
			}
		}
		if got, _, _ := h.ask("t-alice", "tasks/get", task.TaskID, `"taskId":"`+task.TaskID+`"`); got.Status != "working" {
			t.Errorf("it is %+v", got)
		}
		if done, _, body := h.ask("t-alice", "tasks/cancel", task.TaskID, `"taskId":"`+task.TaskID+`"`); done.ResultType != "complete" || done.TaskID != "" {
			t.Errorf("cancel: %s", body)
		}
		if got := h.until(t, task.TaskID, ended); got.Status != "cancelled" || got.Result != nil {
			t.Errorf("afterwards: %+v", got)
		}
		if ev := h.commandDone("box"); ev.Cause != sandbox.CauseKilled {
			t.Errorf("the command's cause: %q, want killed", ev.Cause)
		}
	})

	t.Run("OfASessionOutlivesIt", func(t *testing.T) {
		// A client of the handshake era says once what it knows.
		hello := strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, 1)
		resp, _ := h.post("t-alice", "", hello, nil)
		in := map[string]string{"Mcp-Session-Id": resp.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": handshake}
		h.post("t-alice", in["Mcp-Session-Id"], `{"jsonrpc":"2.0","method":"notifications/initialized"}`, in)
		_, body := h.post("t-alice", in["Mcp-Session-Id"], strings.Replace(longCall(""), "sleep 600", "while [ ! -e go ]; do sleep 0.01; done; rm go; echo after", 1), in)
		_, rest, found := strings.Cut(body, `"taskId":"`)
		id, _, _ := strings.Cut(rest, `"`)
		if !found {
			t.Fatalf("no task: %s", body)
		}
		del, err := h.http.Do(h.asked(t.Context(), http.MethodDelete, h.url, "t-alice", "", in))
		if err != nil {
			t.Fatal(err)
		}
		_ = del.Body.Close()
		letGo()
		got := h.until(t, id, ended)
		if got.Status != "completed" {
			t.Fatalf("the end: %+v", got)
		}
		wantParts(t, got.Result.Content[0].Text, "exit 0", "after")
	})

	t.Run("AreBounded", func(t *testing.T) {
		other := h.again(func(o *mcp.Options) { o.TaskAfter = time.Millisecond })
		for range 64 {
			other.runTask(t, "sleep 600")
		}
		_, _, body := other.ask("t-alice", "tools/call", "run_command", `"name":"run_command","arguments":{"sandbox":"box","command":"sleep 0.1; echo waited"}`)
		if !strings.Contains(body, "waited") || strings.Contains(body, "taskId") {
			t.Errorf("one too many: %s", body)
		}
		other.handler.Close() // and end with the server
	})
}
