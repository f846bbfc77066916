// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestContextsOutliveTheServer(t *testing.T) {
	needs(t, "python3")
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	first := h.cell("box", code.Request{Code: "x = 41"})
	h.restart()
	if res := h.cell("box", code.Request{Code: "x + 1"}); value(res) != "42" || res.ContextID != first.ContextID || res.Restarted != "" || res.Count != 2 {
		t.Fatalf("after the restart: %+v", res)
	}

	t.Run("AndThoseThatNothingRanIn", func(t *testing.T) {
		c, err := h.code.CreateContext(t.Context(), alice, "box", code.ContextRequest{Language: "python"})
		if err != nil {
			t.Fatal(err)
		}
		shell, err := h.code.CreateShell(t.Context(), alice, "box", code.ShellRequest{Name: "fresh"})
		if err != nil {
			t.Fatal(err)
		}
		h.restart()
		now, err := h.code.Context(t.Context(), alice, "box", c.ID)
		if err != nil || now.ProcessID != c.ProcessID || now.Status != code.ContextIdle {
			t.Errorf("the context was %+v, and is %+v, %v", c, now, err)
		}
		now, err = h.code.Shell(t.Context(), alice, "box", "fresh")
		if err != nil || now.ProcessID != shell.ProcessID || now.Status != code.ContextIdle {
			t.Errorf("the shell was %+v, and is %+v, %v", shell, now, err)
		}
		if r := h.in("fresh", "true"); r.Shell.Restarted != "" {
			t.Errorf("its first command: %+v", r)
		}
		if err := errors.Join(h.code.DeleteContext(t.Context(), alice, "box", c.ID), h.code.DeleteShell(t.Context(), alice, "box", "fresh")); err != nil {
			t.Error(err)
		}
	})
	t.Run("AndTheCellsThatRun", func(t *testing.T) {
		began := make(chan struct{})
		over := make(chan error, 1)
		go func() {
			_, err := h.code.RunCode(context.Background(), alice, "box", code.Request{
				Code: "print(1, flush=True)\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nx = 100\nraise KeyError('k')",
			}, &code.Sink{Stdout: func([]byte) error { close(began); return nil }})
			over <- err
		}()
		<-began
		h.restart()
		wantCode(t, <-over, fault.Unavailable)
		if c := h.contexts("box")[0]; c.Status != code.ContextBusy {
			t.Errorf("the context: %+v", c)
		}
		h.exec("box", "touch go")
		if res := h.cell("box", code.Request{Code: "x"}); value(res) != "100" || res.Restarted != "" {
			t.Errorf("the next cell: %+v", res)
		}
		for _, ev := range h.events() {
			if strings.HasSuffix(ev.Command, "raise KeyError('k')") && (!ev.Done || ev.Detail != "KeyError: 'k'") {
				t.Errorf("the event: %+v", ev)
			}
		}
	})
	t.Run("ButThoseWhoseKernelEndedMeanwhileSaySo", func(t *testing.T) {
		c := h.contexts("box")[0]
		h.cell("box", code.Request{Code: "import os, threading\nthreading.Timer(0.3, os._exit, (4,)).start()"})
		rec, err := h.engine.Process(t.Context(), alice, "box", c.ProcessID)
		if err != nil {
			t.Fatal(err)
		}
		h.end()
		soon(t, "the kernel's end", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/%d", rec.PID))
			return err != nil
		})
		h.serve()
		soon(t, "the news of it", func() bool {
			got := h.contexts("box")[0]
			return got.ID == c.ID && got.Status == code.ContextEnded && strings.Contains(got.Ended, "exit code 4")
		})
		if res := h.cell("box", code.Request{Code: "1"}); !strings.Contains(res.Restarted, "exit code 4") {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("AndSingleCellsDoNot", func(t *testing.T) {
		began := make(chan struct{})
		over := make(chan error, 1)
		go func() {
			_, err := h.code.RunCode(context.Background(), alice, "box", code.Request{Stateless: true, Code: "print(1, flush=True)\nimport time; time.sleep(600)"},
				&code.Sink{Stdout: func([]byte) error { close(began); return nil }})
			over <- err
		}()
		<-began
		h.restart()
		wantCode(t, <-over, fault.Unavailable)
		soon(t, "the end of its kernel", func() bool {
			page, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Running: true})
			return err == nil && len(page.Items) == 1
		})
		for _, ev := range h.events() {
			if ev.Type == sandbox.EventCode && !ev.Done {
				t.Errorf("an event is not complete: %+v", ev)
			}
		}
	})
}
