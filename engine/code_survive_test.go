// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestContextsOutliveTheServer(t *testing.T) {
	needs(t, "python3")
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	first := h.cell("box", engine.CodeRequest{Code: "x = 41"})
	h.recorded()
	h.restart()
	if res := h.cell("box", engine.CodeRequest{Code: "x + 1"}); value(res) != "42" || res.ContextID != first.ContextID || res.Restarted != "" || res.Count != 2 {
		t.Fatalf("after the restart: %+v", res)
	}

	t.Run("AndTheCellsThatRun", func(t *testing.T) {
		began := make(chan struct{})
		over := make(chan error, 1)
		go func() {
			_, err := h.engine.RunCode(context.Background(), alice, "box", engine.CodeRequest{
				Code: "print(1, flush=True)\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\nx = 100\nraise KeyError('k')",
			}, &engine.CodeSink{Stdout: func([]byte) error { close(began); return nil }})
			over <- err
		}()
		<-began
		h.restart()
		wantCode(t, <-over, fault.Unavailable)
		if c := h.contexts("box")[0]; c.Status != engine.ContextBusy {
			t.Errorf("the context: %+v", c)
		}
		h.exec("box", "touch go")
		if res := h.cell("box", engine.CodeRequest{Code: "x"}); value(res) != "100" || res.Restarted != "" {
			t.Errorf("the next cell: %+v", res)
		}
		for _, ev := range h.events(s.ID) {
			if strings.HasSuffix(ev.Command, "raise KeyError('k')") && (!ev.Done || ev.Detail != "KeyError: 'k'") {
				t.Errorf("the event: %+v", ev)
			}
		}
	})
	t.Run("ButThoseWhoseKernelEndedMeanwhileSaySo", func(t *testing.T) {
		c := h.contexts("box")[0]
		h.cell("box", engine.CodeRequest{Code: "import os, threading\nthreading.Timer(0.3, os._exit, (4,)).start()"})
		rec, err := h.engine.Process(t.Context(), alice, "box", c.ProcessID)
		if err != nil {
			t.Fatal(err)
		}
		h.recorded()
		h.end()
		soon(t, "the kernel's end", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/%d", rec.PID))
			return err != nil
		})
		h.serve()
		soon(t, "the news of it", func() bool {
			got := h.contexts("box")[0]
			return got.ID == c.ID && got.Status == engine.ContextEnded && strings.Contains(got.Ended, "exit code 4")
		})
		if res := h.cell("box", engine.CodeRequest{Code: "1"}); !strings.Contains(res.Restarted, "exit code 4") {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("AndSingleCellsDoNot", func(t *testing.T) {
		began := make(chan struct{})
		over := make(chan error, 1)
		go func() {
			_, err := h.engine.RunCode(context.Background(), alice, "box", engine.CodeRequest{Stateless: true, Code: "print(1, flush=True)\nimport time; time.sleep(600)"},
				&engine.CodeSink{Stdout: func([]byte) error { close(began); return nil }})
			over <- err
		}()
		<-began
		h.restart()
		wantCode(t, <-over, fault.Unavailable)
		soon(t, "the end of its kernel", func() bool {
			page, err := h.engine.ListProcesses(t.Context(), alice, "box", engine.ProcessQuery{Running: true})
			return err == nil && len(page.Items) == 1
		})
		for _, ev := range h.events(s.ID) {
			if ev.Type == sandbox.EventCode && !ev.Done {
				t.Errorf("an event is not complete: %+v", ev)
			}
		}
	})
}
