// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

func TestTasksOutliveTheServer(t *testing.T) {
	t.Parallel()
	held := &heldStore{}
	h := openRuns(t, func(o *engine.Options) { o.Store = held.over(o.Store) })
	h.after = 100 * time.Millisecond
	h.restart()
	ok(t, h.alice(), "create_sandbox", arguments{"name": "box"})
	ended := func(s shownTask) bool { return s.Status != "working" }
	get := func(token, id string) (shownTask, int, string) {
		t.Helper()
		return h.ask(token, "tasks/get", id, `"taskId":"`+id+`"`)
	}
	letGo := func() {
		t.Helper()
		if _, _, err := h.inside.WriteFile(t.Context(), callers["t-alice"], "box", "go", strings.NewReader(""), sandbox.WriteFileOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const waits = "echo begun; while [ ! -e go ]; do sleep 0.01; done; rm go; echo the end; exit 3"
	runTask := func(commands string) shownTask {
		t.Helper()
		task, _, body := h.ask("t-alice", "tools/call", "run_sandbox", `"name":"run_sandbox","arguments":{"identifier":"box","commands":["`+commands+`"]}`)
		if task.ResultType != "task" || task.Status != "working" {
			t.Fatalf("a long call: %s; want a task", body)
		}
		return task
	}

	for name, begin := range map[string]func() shownTask{
		"OfACommand": func() shownTask { return h.runTask(t, waits) },
		"OfARun":     func() shownTask { return runTask(waits) },
	} {
		t.Run(name, func(t *testing.T) {
			task := begin()
			h.restart()
			got, _, body := get("t-alice", task.TaskID)
			if got.Status != "working" || got.TaskID != task.TaskID || got.StatusMessage == "" || got.PollIntervalMs <= 0 {
				t.Fatalf("with the next server: %s", body)
			}
			letGo()
			got = h.until(t, task.TaskID, ended)
			if got.Status != "completed" || got.Result == nil || got.Result.IsError {
				t.Fatalf("the end: %+v", got)
			}
			wantParts(t, got.Result.Content[0].Text, "exit 3", "begun\nthe end", "sandbox box")
			// It is its token's own, and for an hour.
			for _, token := range []string{"t-bob", "t-reader", "t-stranger"} {
				for _, method := range []string{"tasks/get", "tasks/cancel"} {
					if _, status, body := h.ask(token, method, task.TaskID, `"taskId":"`+task.TaskID+`"`); status != http.StatusBadRequest || !strings.Contains(body, "there is no task") {
						t.Errorf("%s by %s: %d, %s", method, token, status, body)
					}
				}
			}
		})
	}

	t.Run("ThoughItsStartTakesLong", func(t *testing.T) {
		for tool, args := range map[string]string{
			"run_command": `{"sandbox":"box","command":"` + waits + `"}`,
			"run_sandbox": `{"identifier":"box","commands":["` + waits + `"]}`,
		} {
			t.Run(tool, func(t *testing.T) {
				release := held.hold()
				defer release()
				answered := make(chan shownTask, 1)
				go func() {
					task, _, _ := h.ask("t-alice", "tools/call", tool, `"name":"`+tool+`","arguments":`+args)
					answered <- task
				}()
				var task shownTask
				select {
				case task = <-answered:
					t.Errorf("acknowledged before it was on record: %+v", task)
				case <-time.After(5 * h.after):
					release()
					task = <-answered
				}
				release()
				if task.ResultType != "task" {
					t.Fatalf("got %+v; want a task", task)
				}
				h.restart()
				if got, _, body := get("t-alice", task.TaskID); got.Status != "working" {
					t.Errorf("with the next server: %s", body)
				}
				letGo()
				h.until(t, task.TaskID, ended)
			})
		}
	})

	t.Run("IsCancelledByTheNextServer", func(t *testing.T) {
		one, two := h.runTask(t, "sleep 600"), runTask("sleep 600")
		h.restart()
		for _, task := range []shownTask{one, two} {
			if done, _, body := h.ask("t-alice", "tasks/cancel", task.TaskID, `"taskId":"`+task.TaskID+`"`); done.ResultType != "complete" {
				t.Errorf("cancel: %s", body)
			}
			if got := h.until(t, task.TaskID, ended); got.Status != "cancelled" || got.Result != nil {
				t.Errorf("afterwards: %+v", got)
			}
		}
		if r, err := h.runs.Get(t.Context(), callers["t-alice"], strings.TrimPrefix(two.TaskID, "run-")); err != nil || r.State != sandbox.RunCanceled {
			t.Errorf("the run: %+v, %v", r, err)
		}
		// Once more changes nothing.
		h.ask("t-alice", "tasks/cancel", one.TaskID, `"taskId":"`+one.TaskID+`"`)
		if got, _, body := get("t-alice", one.TaskID); got.Status != "cancelled" {
			t.Errorf("once more: %s", body)
		}
	})

	t.Run("WhatIsNoneIsNone", func(t *testing.T) {
		box, err := h.engine.Get(t.Context(), callers["t-alice"], "box")
		if err != nil {
			t.Fatal(err)
		}
		id := string(box.ID)
		for _, name := range []string{
			"x", "run-", "run-x", "run-00000000-0000-4000-8000-000000000000", "command-", "command-box-x", "command-" + id, "command-" + id + "-",
			"command-" + id + "-none", "command-0000000000000000-x", "run-../../x",
		} {
			if _, status, body := get("t-alice", name); status != http.StatusBadRequest || !strings.Contains(body, "there is no task") {
				t.Errorf("%q: %d, %s", name, status, body)
			}
		}
	})

	t.Run("TwoThatWaitForOneRunAreTwo", func(t *testing.T) {
		id := strings.TrimPrefix(runTask("sleep 600").TaskID, "run-")
		again, _, body := h.ask("t-alice", "tools/call", "run_sandbox", `"name":"run_sandbox","arguments":{"identifier":"box","run_id":"`+id+`"}`)
		if again.ResultType != "task" || again.TaskID == "" || again.TaskID == "run-"+id {
			t.Errorf("got %s", body)
		}
		ok(t, h.alice(), "stop_process", arguments{"process": id})
	})
}

// heldStore is a store whose updates wait while it is held.
type heldStore struct {
	store.Store
	mu *sync.RWMutex
}

func (s *heldStore) over(inner store.Store) store.Store {
	if s.mu == nil {
		s.mu = &sync.RWMutex{}
	}
	return &heldStore{inner, s.mu}
}

func (s *heldStore) hold() (release func()) {
	s.mu.Lock()
	return sync.OnceFunc(s.mu.Unlock)
}

func (s *heldStore) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.Store.Update(ctx, fn)
}
