// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/kernel"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// needs skips where this host, whose programs the fake runtime runs, has no such program.
func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("this host has no %s, which the memory runtime would run", program)
	}
}

// cell runs code that has to be run, however it ends.
func (h *house) cell(ref string, r code.Request) code.Result {
	h.t.Helper()
	res, err := h.code.RunCode(h.t.Context(), alice, ref, r, nil)
	if err != nil {
		h.t.Fatalf("RunCode %.80q: %v", r.Code, err)
	}
	return res
}

// value is what the cell's last expression came to.
func value(r code.Result) string {
	for _, x := range r.Results {
		if x.Main {
			return x.Text
		}
	}
	return ""
}

func (h *house) contexts(ref string) []code.Context {
	h.t.Helper()
	all, err := h.code.Contexts(h.t.Context(), alice, ref)
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// soon asks again and again until it is so, where no commit tells.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

func TestRunCode(t *testing.T) {
	needs(t, "python3")
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})

	t.Run("VariablesLiveOnInTheDefaultContextOfALanguage", func(t *testing.T) {
		first := h.cell("box", code.Request{Code: "x = 20\nprint('out')\nimport sys; print('err', file=sys.stderr)"})
		if first.Status != code.OK || string(first.Stdout) != "out\n" || string(first.Stderr) != "err\n" || first.Count != 1 || first.Restarted != "" {
			t.Errorf("first: %+v", first)
		}
		next := h.cell("box", code.Request{Code: "x + 22", Language: "py"})
		if value(next) != "42" || next.ContextID != first.ContextID || next.Count != 2 {
			t.Errorf("next: %+v", next)
		}
		other := h.cell("box", code.Request{Code: "x=5; echo $x", Language: "bash"})
		if string(other.Stdout) != "5\n" || other.ContextID == first.ContextID {
			t.Errorf("bash: %+v", other)
		}
		all := h.contexts("box")
		if len(all) != 2 || all[0].ID != first.ContextID || !all[0].Default || all[0].Status != code.ContextIdle || all[0].Cells != 2 || all[1].Language != "bash" {
			t.Errorf("contexts: %+v", all)
		}
	})
	t.Run("IsAnEvent", func(t *testing.T) {
		res := h.cell("box", code.Request{Code: "raise ValueError('no')"})
		if res.Status != code.Error || res.Error == nil || res.Error.Name != "ValueError" || res.ExitCode != 1 {
			t.Errorf("got %+v", res)
		}
		evs := h.events()
		ev := evs[len(evs)-1]
		if ev.Type != sandbox.EventCode || !ev.Done || ev.OK || ev.Language != "python" || ev.ContextID != res.ContextID ||
			ev.ProcessID != res.CellID || ev.Command != "raise ValueError('no')" || ev.Detail != "ValueError: no" || ev.Duration <= 0 {
			t.Errorf("the event: %+v", ev)
		}
	})
	t.Run("StatelessLeavesNothing", func(t *testing.T) {
		before := len(h.contexts("box"))
		res := h.cell("box", code.Request{Code: "'x' in globals()", Stateless: true})
		if value(res) != "False" || res.ContextID != "" {
			t.Errorf("got %+v", res)
		}
		if n := len(h.contexts("box")); n != before {
			t.Errorf("%d contexts after it, %d before", n, before)
		}
		soon(t, "its kernel's end", func() bool {
			page, _ := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Running: true})
			return len(page.Items) == before
		})
	})
	t.Run("RefusesWhatMakesNoSense", func(t *testing.T) {
		id := h.contexts("box")[0].ID
		for name, r := range map[string]code.Request{
			"Language":          {Language: "cobol"},
			"NotTheContexts":    {Language: "bash", ContextID: id},
			"NUL":               {Code: "a\x00b"},
			"NotUTF8":           {Code: "\xff"},
			"Timeout":           {Timeout: -1},
			"StatelessInOne":    {Stateless: true, ContextID: id},
			"CwdOfTheDefault":   {Cwd: "x"},
			"EnvName":           {Env: map[string]string{"a b": ""}},
			"TooMuchToCollect":  {MaxStdout: engine.MaxCollected + 1},
			"UserOfTheDefault":  {User: "root"},
			"NoSuchUser":        {User: "x", Stateless: true},
			"NegativeMaxStderr": {MaxStderr: -1},
		} {
			if _, err := h.code.RunCode(t.Context(), alice, "box", r, nil); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := h.code.RunCode(t.Context(), alice, "box", code.Request{Code: strings.Repeat("#", code.MaxCode+1)}, nil)
		wantCode(t, err, fault.TooLarge)
		_, err = h.code.RunCode(t.Context(), alice, "box", code.Request{ContextID: sandbox.NewProcessID()}, nil)
		wantCode(t, err, fault.NotFound)
		_, err = h.code.RunCode(t.Context(), alice, "box", code.Request{ContextID: "../x"}, nil)
		wantCode(t, err, fault.NotFound)
		_, err = h.code.RunCode(t.Context(), mary, "box", code.Request{Code: "1"}, nil)
		wantCode(t, err, fault.NotFound)
	})
	t.Run("AsLongAsTheBoundAllows", func(t *testing.T) {
		res := h.cell("box", code.Request{Code: "1 #" + strings.Repeat("x", code.MaxCode-3)})
		if value(res) != "1" {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("TooMuchOutputIsCutAndCounted", func(t *testing.T) {
		res := h.cell("box", code.Request{Code: "print('x' * 9_999_999)", MaxStdout: 10})
		if string(res.Stdout) != "xxxxxxxxxx" || !res.StdoutTruncated || res.StdoutBytes != 10_000_000 {
			t.Errorf("got %d bytes, truncated %v, %d in all", len(res.Stdout), res.StdoutTruncated, res.StdoutBytes)
		}
	})
}

func TestRunCodeStreams(t *testing.T) {
	needs(t, "python3")
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box"})
	var got []string
	var start code.Start
	sink := &code.Sink{
		Started: func(s code.Start) error { start = s; return nil },
		Stdout:  func(b []byte) error { got = append(got, "out "+string(b)); return nil },
		Stderr:  func(b []byte) error { got = append(got, "err "+string(b)); return nil },
		Result:  func(r kernel.Result) error { got = append(got, "result "+r.Text); return nil },
	}
	res, err := h.code.RunCode(t.Context(), alice, "box", code.Request{
		Code: "print('one', flush=True)\ndisplay(7)\nprint('two', flush=True)\n9",
	}, sink)
	if err != nil || res.Status != code.OK || start.ContextID == "" || start.CellID != res.CellID || len(res.Stdout)+len(res.Results) > 0 {
		t.Fatalf("got %+v, %v; start %+v", res, err, start)
	}
	if all := strings.ReplaceAll(strings.Join(got, "|"), "\n", ""); all != "out one|result 7|out two|result 9" {
		t.Errorf("got %q", all)
	}

	t.Run("ASinkThatFailsEndsTheTakingAndNotTheCell", func(t *testing.T) {
		enough := errors.New("enough")
		_, err := h.code.RunCode(t.Context(), alice, "box", code.Request{Code: "print('a', flush=True)\nimport time; time.sleep(0.3)\nkept = 1"},
			&code.Sink{Stdout: func([]byte) error { return enough }})
		if !errors.Is(err, enough) {
			t.Errorf("got %v", err)
		}
		if res := h.cell("box", code.Request{Code: "kept"}); value(res) != "1" {
			t.Errorf("the cell did not go on: %+v", res)
		}
	})
	t.Run("ACallerThatGoesAwayMayInterruptIt", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := h.code.RunCode(ctx, alice, "box", code.Request{
			Code: "kept = 2\nprint('a', flush=True)\nimport time; time.sleep(600)\nkept = 3", InterruptOnDisconnect: true,
		}, &code.Sink{Stdout: func([]byte) error { cancel(); return nil }})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if res := h.cell("box", code.Request{Code: "kept"}); value(res) != "2" {
			t.Errorf("got %+v", res)
		}
	})
}

func TestCellsEnd(t *testing.T) {
	needs(t, "python3")
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box"})
	h.cell("box", code.Request{Code: "x = 1"})

	t.Run("ByTheirTimeoutAndVariablesStay", func(t *testing.T) {
		res := h.cell("box", code.Request{Code: "import time\nprint('a')\ntime.sleep(600)", Timeout: 200 * time.Millisecond})
		if res.Status != code.TimedOut || res.Dead || res.Cause != sandbox.CauseTimeout || string(res.Stdout) != "a\n" {
			t.Errorf("got %+v", res)
		}
		if res := h.cell("box", code.Request{Code: "x"}); value(res) != "1" || res.Restarted != "" {
			t.Errorf("after it: %+v", res)
		}
	})
	t.Run("ByTheDeathOfTheKernelThatIgnoresTheTimeout", func(t *testing.T) {
		res := h.cell("box", code.Request{
			Code: "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 2\ntime.sleep(600)", Timeout: 200 * time.Millisecond,
		})
		if res.Status != code.TimedOut || !res.Dead || res.Signal != "SIGKILL" {
			t.Errorf("got %+v", res)
		}
		if all := h.contexts("box"); len(all) != 1 || all[0].Status != code.ContextEnded || all[0].Ended == "" {
			t.Errorf("contexts: %+v", all)
		}
		res = h.cell("box", code.Request{Code: "'x' in globals()"})
		if value(res) != "False" || res.Restarted == "" || res.Count != 1 {
			t.Errorf("after it: %+v", res)
		}
		if res := h.cell("box", code.Request{Code: "1"}); res.Restarted != "" {
			t.Errorf("told twice: %+v", res)
		}
	})
	t.Run("WithTheirKernel", func(t *testing.T) {
		res := h.cell("box", code.Request{Code: "import os\nprint('last', flush=True)\nos._exit(7)"})
		if res.Status != code.Ended || !res.Dead || res.ExitCode != 7 || string(res.Stdout) != "last\n" {
			t.Errorf("got %+v", res)
		}
		evs := h.events()
		code := evs[len(evs)-1]
		for _, ev := range evs {
			if ev.ProcessID == res.CellID {
				code = ev
			}
		}
		if !code.Done || code.OK || code.ExitCode != 7 || !strings.Contains(code.Detail, "exit code 7") {
			t.Errorf("the event: %+v", code)
		}
	})
	t.Run("AKernelThatDiesBetweenCellsIsStartedAnewForTheNext", func(t *testing.T) {
		res := h.cell("box", code.Request{Code: "import os, threading\nthreading.Timer(0.1, os._exit, (9,)).start()"})
		soon(t, "its end", func() bool { return h.contexts("box")[0].Status == code.ContextEnded })
		next := h.cell("box", code.Request{Code: "5"})
		if next.ContextID != res.ContextID || value(next) != "5" || !strings.Contains(next.Restarted, "exit code 9") {
			t.Errorf("got %+v", next)
		}
	})
	t.Run("ByTheBoundOfWhatAKernelMayWriteInItsLife", func(t *testing.T) {
		res := h.cell("box", code.Request{Code: "line = 'x' * 1023\nfor _ in range(70 * 1024): print(line)"})
		if res.Status != code.Ended || !res.Dead || !strings.Contains(res.CauseDetail, "write large output to files") && !strings.Contains(res.CauseDetail, "67108864 bytes") {
			t.Errorf("got %v, dead %v, %q", res.Status, res.Dead, res.CauseDetail)
		}
		if res := h.cell("box", code.Request{Code: "6"}); value(res) != "6" || !strings.Contains(res.Restarted, "67108864 bytes") {
			t.Errorf("after it: %+v", res)
		}
	})
	t.Run("WithTheirSandbox", func(t *testing.T) {
		began := make(chan struct{})
		got := make(chan code.Result, 1)
		go func() {
			res, err := h.code.RunCode(context.Background(), alice, "box", code.Request{Code: "print(1, flush=True)\nimport time; time.sleep(600)"},
				&code.Sink{Stdout: func([]byte) error { close(began); return nil }})
			if err != nil {
				t.Error(err)
			}
			got <- res
		}()
		<-began
		if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if res := <-got; res.Status != code.Ended || res.Cause != sandbox.CauseStopped {
			t.Errorf("got %+v", res)
		}
		if all := h.contexts("box"); len(all) != 1 || all[0].Status != code.ContextEnded {
			t.Errorf("contexts of the stopped one: %+v", all)
		}
		_, err := h.code.RunCode(t.Context(), alice, "box", code.Request{Code: "1"}, nil)
		wantCode(t, err, fault.State)
		if _, err := h.engine.Start(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		if res := h.cell("box", code.Request{Code: "1"}); res.Restarted == "" {
			t.Errorf("got %+v", res)
		}
	})
	t.Run("AndTheContextsGoWithADeletedOne", func(t *testing.T) {
		if err := h.engine.Delete(t.Context(), alice, "box"); err != nil {
			t.Fatal(err)
		}
		var left []*sandbox.Context
		err := h.store.View(t.Context(), func(tx store.Tx) (err error) { left, err = tx.Contexts().List(s.ID); return err })
		if err != nil || len(left) > 0 {
			t.Errorf("%d are left, %v", len(left), err)
		}
	})
}

func TestContexts(t *testing.T) {
	needs(t, "python3")
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"A": "sandbox", "B": "sandbox"}})
	make1 := func(r code.ContextRequest) code.Context {
		t.Helper()
		c, err := h.code.CreateContext(t.Context(), alice, "box", r)
		if err != nil {
			t.Fatalf("CreateContext: %v", err)
		}
		return c
	}

	t.Run("HaveADirectoryAndVariablesOfTheirOwn", func(t *testing.T) {
		h.exec("box", "mkdir -p sub")
		c := make1(code.ContextRequest{Language: "bash", Cwd: "sub", Env: map[string]string{"B": "context"}})
		if c.Status != code.ContextIdle || c.Language != "bash" || c.Default || c.ProcessID == "" {
			t.Errorf("got %+v", c)
		}
		res := h.cell("box", code.Request{ContextID: c.ID, Code: "echo ${PWD##*/} $A $B $C", Env: map[string]string{"C": "cell"}})
		if string(res.Stdout) != "sub sandbox context cell\n" {
			t.Errorf("got %q", res.Stdout)
		}
		if got, err := h.code.Context(t.Context(), alice, "box", c.ID); err != nil || got.Cells != 1 || got.State != nil {
			t.Errorf("Context: %+v, %v", got, err)
		}
		if err := h.code.DeleteContext(t.Context(), alice, "box", c.ID); err != nil {
			t.Fatal(err)
		}
		_, err := h.code.Context(t.Context(), alice, "box", c.ID)
		wantCode(t, err, fault.NotFound)
		wantCode(t, h.code.DeleteContext(t.Context(), alice, "box", c.ID), fault.NotFound)
	})
	t.Run("CellsOfOneRunInTheirOrderAndThoseOfSeveralBesideEachOther", func(t *testing.T) {
		one, two := make1(code.ContextRequest{Language: "python"}), make1(code.ContextRequest{Language: "python"})
		began := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := h.code.RunCode(t.Context(), alice, "box", code.Request{ContextID: one.ID, Code: "all = []\nprint(1, flush=True)\nimport os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"},
				&code.Sink{Stdout: func([]byte) error { close(began); return nil }})
			if err != nil {
				t.Error(err)
			}
		})
		<-began
		for i := range 10 {
			wg.Go(func() {
				if res := h.cell("box", code.Request{ContextID: one.ID, Code: fmt.Sprintf("all.append(%d)", i)}); res.Status != code.OK {
					t.Errorf("cell %d: %+v", i, res)
				}
			})
			soon(t, "its place in the queue", func() bool {
				c, err := h.code.Context(t.Context(), alice, "box", one.ID)
				return err == nil && c.Queued == i+1 && c.Status == code.ContextBusy
			})
		}
		if res := h.cell("box", code.Request{ContextID: two.ID, Code: "open('go', 'w').close()"}); res.Status != code.OK {
			t.Errorf("got %+v", res)
		}
		wg.Wait()
		if res := h.cell("box", code.Request{ContextID: one.ID, Code: "all"}); value(res) != "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]" {
			t.Errorf("got %q", value(res))
		}
	})
	t.Run("CanBeInterruptedAndRestarted", func(t *testing.T) {
		c := h.contexts("box")[0]
		wantCode(t, h.code.InterruptContext(t.Context(), alice, "box", c.ID), fault.State)
		began := make(chan struct{}, 1)
		got := make(chan code.Result)
		sleep := func() {
			res, err := h.code.RunCode(t.Context(), alice, "box", code.Request{ContextID: c.ID, Code: "y = 5\nprint(1, flush=True)\nimport time; time.sleep(600)"},
				&code.Sink{Stdout: func([]byte) error { began <- struct{}{}; return nil }})
			if err != nil {
				t.Error(err)
			}
			got <- res
		}
		go sleep()
		<-began
		if err := h.code.InterruptContext(t.Context(), alice, "box", c.ID); err != nil {
			t.Fatal(err)
		}
		if res := <-got; res.Status != code.Interrupted || res.ExitCode != 130 {
			t.Errorf("got %+v", res)
		}
		go sleep()
		<-began
		again, err := h.code.RestartContext(t.Context(), alice, "box", c.ID)
		if err != nil || again.ID != c.ID || again.ProcessID == c.ProcessID || again.Status != code.ContextIdle || again.Starts != 2 || again.Cells != 0 {
			t.Errorf("RestartContext: %+v, %v", again, err)
		}
		if res := <-got; res.Status != code.Ended || !res.Dead {
			t.Errorf("got %+v", res)
		}
		if res := h.cell("box", code.Request{ContextID: c.ID, Code: "'y' in globals()"}); value(res) != "False" || res.Restarted != "" {
			t.Errorf("after the restart: %+v", res)
		}
	})
	t.Run("DeletedWhileTheirKernelStartsLeaveNone", func(t *testing.T) {
		before := len(h.contexts("box"))
		over := make(chan error)
		go func() {
			_, err := h.code.CreateContext(context.Background(), alice, "box", code.ContextRequest{Language: "python"})
			over <- err
		}()
		soon(t, "the context", func() bool { return len(h.contexts("box")) > before })
		c := h.contexts("box")[before]
		if err := h.code.DeleteContext(t.Context(), alice, "box", c.ID); err != nil {
			t.Error(err)
		}
		<-over
		soon(t, "the end of its kernel", func() bool {
			page, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Running: true})
			return err == nil && len(page.Items) == before
		})
	})
	t.Run("AreBounded", func(t *testing.T) {
		for len(h.contexts("box")) < code.MaxContexts {
			make1(code.ContextRequest{Language: "bash"})
		}
		_, err := h.code.CreateContext(t.Context(), alice, "box", code.ContextRequest{Language: "bash"})
		wantCode(t, err, fault.Exhausted)
		_, err = h.code.RunCode(t.Context(), alice, "box", code.Request{Code: "1", Stateless: true}, nil)
		wantCode(t, err, fault.Exhausted)
	})
	t.Run("OfNoLanguageAreRefused", func(t *testing.T) {
		_, err := h.code.CreateContext(t.Context(), alice, "box", code.ContextRequest{})
		wantCode(t, err, fault.Invalid)
		_, err = h.code.CreateContext(t.Context(), alice, "box", code.ContextRequest{Language: "cobol"})
		wantCode(t, err, fault.Invalid)
	})
}

func TestCodeWithoutItsLanguage(t *testing.T) {
	h := open(t, t.TempDir())
	h.create(engine.CreateRequest{Key: "box", Env: map[string]string{"PATH": "/nowhere"}})
	_, err := h.code.RunCode(t.Context(), alice, "box", code.Request{Code: "1"}, nil)
	wantCode(t, err, fault.Unsupported)
	if all := h.contexts("box"); len(all) != 0 {
		t.Errorf("contexts: %+v", all)
	}
}

// A context that waits for cells does not keep its sandbox from being idle; a cell does.
func TestContextsAreNoUse(t *testing.T) {
	needs(t, "python3")
	h := open(t, t.TempDir())
	s := h.create(engine.CreateRequest{Key: "box", IdleTimeout: new(time.Second)})
	res := h.cell("box", code.Request{Code: "import time; time.sleep(1.5)\nx = 1"})
	if res.Status != code.OK {
		t.Fatalf("got %+v", res)
	}
	soon(t, "the stop", func() bool { return h.get(s.ID).State == sandbox.Stopped })
	if got := h.get(s.ID); got.StopCause != sandbox.CauseIdle {
		t.Errorf("stopped for %q", got.StopCause)
	}
	if res := h.cell("box", code.Request{Code: "'x' in globals()"}); value(res) != "False" || res.Restarted == "" {
		t.Errorf("got %+v", res)
	}
}
