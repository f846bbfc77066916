// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code_test

import (
	"fmt"
	"testing"
	"time"

	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
)

// queue has a shell run a command when its turn comes.
func (h *house) queue(shell, command string) string {
	h.t.Helper()
	id, err := h.code.ShellQueue(h.t.Context(), alice, "box", shell, engine.ExecRequest{
		Shell: command, Mark: process.Mark{Labels: map[string]string{"queue": "yes"}},
	})
	if err != nil {
		h.t.Fatalf("queue %q: %v", command, err)
	}
	return id
}

func (h *house) exitOf(id string) (exit int, detail string) {
	h.t.Helper()
	p, err := h.engine.WaitProcess(h.t.Context(), alice, "box", id, time.Minute)
	if err != nil || p.Result == nil {
		h.t.Fatalf("%s: %+v, %v", id, p, err)
	}
	return p.Result.ExitCode, p.Result.CauseDetail
}

const untilGo = "while ! [ -e go ]; do read -t 0.01 < <(sleep 1); done; "

func TestCommandsWaitForTheirTurn(t *testing.T) {
	needs(t, "bash")
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	h.in("main", "log=")
	first := h.queue("main", untilGo+"log=${log}0")
	var ids []string
	for i := 1; i <= 40; i++ { // more than a shell remembers of those that have ended
		ids = append(ids, h.queue("main", fmt.Sprintf("log=$log.%d; (exit %d)", i, i)))
	}
	for _, id := range ids[:2] {
		if p, err := h.engine.Process(t.Context(), alice, "box", id); err != nil || p.Result != nil || p.Labels["queue"] != "yes" {
			t.Errorf("one that waits: %+v, %v", p, err)
		}
	}
	if err := h.code.AwaitCommand(t.Context(), alice, "box", "main", first); err != nil {
		t.Fatal(err)
	}
	waiting, err := h.code.ShellQueued(t.Context(), alice, "box", "main")
	if err != nil || len(waiting) != 40 || waiting[0].ID != ids[0] || waiting[39].ID != ids[39] {
		t.Errorf("%v wait, %v", waiting, err)
	}
	h.exec("box", "touch go")
	if err := h.code.AwaitCommand(t.Context(), alice, "box", "main", ids[39]); err != nil {
		t.Error(err)
	}
	want := "0"
	for i, id := range ids {
		if exit, detail := h.exitOf(id); exit != i+1 {
			t.Errorf("the command %d ended with %d (%s)", i+1, exit, detail)
		}
		want += fmt.Sprintf(".%d", i+1)
	}
	said(t, h.in("main", "echo $log"), want+"\n", 0)
}

func TestACommandWhoseTurnDoesNotComeIsToldSo(t *testing.T) {
	needs(t, "bash")
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	never := func(what, id string) {
		t.Helper()
		if exit, detail := h.exitOf(id); exit == 0 { // once that is on record, behind the answer of what ended it
			t.Errorf("%s: it ended with %d (%s)", what, exit, detail)
		}
		rows, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Labels: map[string]string{"queue": "yes"}, Limit: process.MaxPage})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rows.Items {
			if p.ID == id && (p.Result == nil || p.Result.ExitCode == 0) {
				t.Errorf("%s: %+v", what, p.Result)
			}
		}
	}
	running := h.queue("main", untilGo+"echo on; (exit 3)")
	if err := h.code.AwaitCommand(t.Context(), alice, "box", "main", running); err != nil {
		t.Fatal(err)
	}
	waiting := h.queue("main", "touch ran")
	h.restart()
	never("the server ended", waiting)
	h.exec("box", "touch go")
	if exit, detail := h.exitOf(running); exit != 3 {
		t.Errorf("the one that ran ended with %d (%s)", exit, detail)
	}
	h.exec("box", "rm go")
	h.queue("main", untilGo)
	waiting = h.queue("main", "touch ran")
	if err := h.code.DeleteShell(t.Context(), alice, "box", "main"); err != nil {
		t.Fatal(err)
	}
	if p, err := h.engine.Process(t.Context(), alice, "box", waiting); err != nil || p.Result == nil || p.Result.ExitCode != 127 {
		t.Errorf("as soon as its shell was deleted: %+v, %v", p.Result, err)
	}
	never("its shell was deleted", waiting)
	h.queue("other", untilGo)
	waiting = h.queue("other", "touch ran")
	if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	never("the sandbox was stopped", waiting)
	if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
		t.Fatal(err)
	}
	h.exec("box", "! [ -e ran ]")
	_, err := h.code.ShellQueue(t.Context(), alice, "box", "a/b", engine.ExecRequest{Shell: "true"})
	wantCode(t, err, fault.Invalid)
	_, err = h.code.ShellQueue(t.Context(), alice, "box", "main", engine.ExecRequest{})
	wantCode(t, err, fault.Invalid)
}
