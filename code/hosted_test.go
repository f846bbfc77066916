// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package code_test

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/process"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// logged returns what a process has written, as its log tells it.
func (h *house) logged(id string) (stdout, stderr string, end engine.FollowEnd) {
	h.t.Helper()
	f, err := h.engine.Follow(h.t.Context(), alice, "box", id, engine.FollowRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	var text [2]strings.Builder
	end, err = f.Run(h.t.Context(), engine.FollowSink{Frame: func(fr sandbox.Frame) error {
		text[fr.Stream-sandbox.Stdout].Write(fr.Data)
		return nil
	}})
	if err != nil {
		h.t.Fatal(err)
	}
	return text[0].String(), text[1].String(), end
}

// begun runs a command in the shell main that does not end by itself, and returns once it runs: it has said so.
func (h *house) begun(r engine.ExecRequest) code.ShellResult {
	h.t.Helper()
	r.Wait = 50 * time.Millisecond
	r.Shell = "echo begun; " + r.Shell
	res := h.inWith("main", r)
	if !res.Running {
		h.t.Fatalf("%+v", res)
	}
	h.await("the begin of "+r.Shell, func() bool {
		now, err := h.code.ShellCommand(h.t.Context(), alice, "box", "main", res.ProcessID, 0)
		return err == nil && strings.HasPrefix(string(now.Stdout), "begun\n")
	})
	return res
}

func TestAShellsCommandIsAProcess(t *testing.T) {
	needs(t, "bash")
	started := func(t *testing.T) *house {
		h := open(t, t.TempDir())
		h.create(engine.CreateRequest{Key: "box"})
		return h
	}
	t.Run("WithARecordALogAndAPlaceInLists", func(t *testing.T) {
		h := started(t)
		r := h.in("main", "echo out; echo err >&2; (exit 5)")
		stdout, stderr, end := h.logged(r.ProcessID)
		if stdout != "out\n" || stderr != "err\n" || end.Result.ExitCode != 5 || end.Result.StdoutBytes != 4 {
			t.Errorf("%q, %q, %+v", stdout, stderr, end)
		}
		rec, err := h.engine.WaitProcess(t.Context(), alice, "box", r.ProcessID, time.Minute)
		if err != nil || rec.Result == nil || rec.Result.ExitCode != 5 || rec.LastSeq != 2 || rec.PID == 0 {
			t.Errorf("%+v, %v", rec, err)
		}
		page, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{})
		found := false
		for _, one := range page.Items {
			found = found || one.ID == r.ProcessID && one.Shell != ""
		}
		if err != nil || !found {
			t.Errorf("%+v, %v", page, err)
		}
		h.await("the end of its pipes", func() bool {
			left, err := filepath.Glob("/dev/shm/.sandpit-" + r.ProcessID + "*")
			return err == nil && len(left) == 0
		})
	})
	t.Run("WithAStreamedInput", func(t *testing.T) {
		h := started(t)
		running := h.begun(engine.ExecRequest{Shell: "read a; echo got $a; cat; echo end", StreamStdin: true})
		for _, in := range []engine.InputRequest{{Data: []byte("one\n"), Offset: -1}, {Data: []byte("two\n"), Offset: 4, End: true}} {
			if _, err := h.engine.WriteInput(t.Context(), alice, "box", running.ProcessID, in); err != nil {
				t.Fatal(err)
			}
		}
		done, err := h.code.ShellCommand(t.Context(), alice, "box", "main", running.ProcessID, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		said(t, done, "begun\ngot one\ntwo\nend\n", 0)
		// One that never reads its input ends all the same, and the next one has none of it.
		said(t, h.inWith("main", engine.ExecRequest{Shell: "echo deaf", StreamStdin: true}), "deaf\n", 0)
		said(t, h.in("main", "cat"), "", 0)
	})
	t.Run("WithOneOutputAndANameWhereThatIsAskedFor", func(t *testing.T) {
		h := started(t)
		r := h.inWith("main", engine.ExecRequest{Shell: "echo 1; echo 2 >&2; echo 3", MergeOutput: true, Mark: process.Mark{Name: "built", Labels: map[string]string{"a": "b"}}})
		said(t, r, "1\n2\n3\n", 0)
		rec, err := h.engine.Process(t.Context(), alice, "box", "name:built")
		if err != nil || rec.ID != r.ProcessID || rec.Labels["a"] != "b" {
			t.Errorf("%+v, %v", rec, err)
		}
		running := h.begun(engine.ExecRequest{Shell: "sleep 1000", Mark: process.Mark{Name: "one"}})
		_, err = h.code.ShellExec(t.Context(), alice, "box", "other", engine.ExecRequest{Shell: "true", Mark: process.Mark{Name: "one"}}, nil)
		wantCode(t, err, fault.Exists)
		if err := h.engine.KillProcess(t.Context(), alice, "box", "name:one"); err != nil {
			t.Fatal(err)
		}
		if rec, err := h.engine.Process(t.Context(), alice, "box", running.ProcessID); err != nil || rec.Result == nil || rec.Result.Cause != sandbox.CauseKilled {
			t.Errorf("%+v, %v", rec.Result, err)
		}
	})
	t.Run("ThatSignalsEndAsAnyOther", func(t *testing.T) {
		h := started(t)
		said(t, h.in("main", "x=kept"), "", 0)
		signal := func(command string, sig syscall.Signal) code.ShellResult {
			t.Helper()
			r := h.begun(engine.ExecRequest{Shell: command})
			if err := h.engine.SignalProcess(t.Context(), alice, "box", r.ProcessID, sig, false); err != nil {
				t.Fatal(err)
			}
			done, err := h.code.ShellCommand(t.Context(), alice, "box", "main", r.ProcessID, time.Minute)
			if err != nil || done.Shell.Ended {
				t.Fatalf("%s: %+v, %v", command, done, err)
			}
			rec, err := h.engine.Process(t.Context(), alice, "box", r.ProcessID)
			if err != nil || rec.Result == nil || rec.Result.Signal != done.Signal || rec.Result.ExitCode != done.ExitCode || rec.Result.Cause != done.Cause {
				t.Errorf("%s: %+v, %v, and the caller was told %+v", command, rec.Result, err, done.Result)
			}
			return done
		}
		for _, c := range []struct {
			command, out, signal string
			sig                  syscall.Signal
			code                 int
			cause                sandbox.Cause
		}{
			{"sleep 1000; echo after", "", "SIGTERM", syscall.SIGTERM, 143, ""},
			{"while :; do sleep 1000; done; echo after", "", "SIGHUP", syscall.SIGHUP, 129, ""},
			{"while :; do :; done; echo after", "", "SIGQUIT", syscall.SIGQUIT, 131, ""},
			{"sh -c 'trap \"echo cleaned; exit 7\" TERM; while :; do sleep 0.01; done'; echo after $?", "cleaned\n", "SIGTERM", syscall.SIGTERM, 143, ""},
			{"sh -c 'trap \"\" INT TERM; sleep 1000; sleep 1000'; echo after", "", "SIGKILL", syscall.SIGKILL, 137, sandbox.CauseKilled},
			{"sleep 1000; echo after", "", "SIGINT", syscall.SIGINT, 130, ""},
		} {
			r := signal(c.command, c.sig)
			if string(r.Stdout) != "begun\n"+c.out || r.Signal != c.signal || r.ExitCode != c.code || r.Cause != c.cause {
				t.Errorf("%s by %s: %q, %+v", c.command, c.signal, r.Stdout, r.Result)
			}
			said(t, h.in("main", "echo $x"), "kept\n", 0)
		}
	})
	t.Run("ThatWaitsForItsTurnTakesInputThen", func(t *testing.T) {
		h := started(t)
		first := h.begun(engine.ExecRequest{Shell: "sleep 1000"})
		second, ids := make(chan code.ShellResult, 1), make(chan string, 1)
		go func() {
			r, _ := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: "cat", StreamStdin: true, Started: func(id string) { ids <- id }}, nil)
			second <- r
		}()
		if err := h.engine.SignalProcess(t.Context(), alice, "box", first.ProcessID, syscall.SIGKILL, false); err != nil {
			t.Fatal(err)
		}
		id := <-ids
		if _, err := h.engine.WriteInput(t.Context(), alice, "box", id, engine.InputRequest{Data: []byte("early\n"), Offset: -1, End: true}); err != nil {
			t.Fatal(err)
		}
		said(t, <-second, "early\n", 0)
	})
	t.Run("IsThereWhenItsCallerIsToldOfIt", func(t *testing.T) {
		h := started(t)
		for range 20 {
			var told int
			r, err := h.code.ShellExec(t.Context(), alice, "box", "main", engine.ExecRequest{Shell: "echo it", Started: func(id string) {
				told++
				f, err := h.engine.Follow(t.Context(), alice, "box", id, engine.FollowRequest{Once: true})
				if err != nil {
					t.Errorf("the command %s was begun: %v", id, err)
					return
				}
				f.Close()
			}}, nil)
			if err != nil || told != 1 {
				t.Fatalf("told %d times, %v", told, err)
			}
			said(t, r, "it\n", 0)
		}
	})
	t.Run("AlsoAfterTheServersEnd", func(t *testing.T) {
		h := started(t)
		first := h.in("main", "echo first")
		second := h.begun(engine.ExecRequest{Shell: "sleep 0.6; echo done; exit 3"})
		h.restart()
		r, err := h.code.ShellCommand(t.Context(), alice, "box", "main", first.ProcessID, 0)
		if err != nil {
			t.Fatal(err)
		}
		said(t, r, "first\n", 0)
		if r, err = h.code.ShellCommand(t.Context(), alice, "box", "main", second.ProcessID, time.Minute); err != nil {
			t.Fatal(err)
		}
		said(t, r, "begun\ndone\n", 3)
		stdout, _, end := h.logged(second.ProcessID)
		if stdout != "begun\ndone\n" || end.Result.ExitCode != 3 {
			t.Errorf("%q, %+v", stdout, end)
		}
	})
	t.Run("WhoseBackgroundJobsWriteOn", func(t *testing.T) {
		h := started(t)
		said(t, h.in("main", "(while [ ! -e go ]; do sleep 0.01; done; seq 100000; touch through) & echo begun"), "begun\n", 0)
		said(t, h.in("main", "touch go"), "", 0)
		h.await("the job to be through", func() bool {
			return h.in("other", "test -e through").ExitCode == 0
		})
		said(t, h.in("main", "echo next"), "next\n", 0)
	})
	t.Run("ThatCannotBeKilledTakesItsShellAlong", func(t *testing.T) {
		h := started(t)
		r := h.begun(engine.ExecRequest{Shell: "trap '' INT TERM; while :; do :; done"})
		if err := h.engine.SignalProcess(t.Context(), alice, "box", r.ProcessID, syscall.SIGKILL, false); err != nil {
			t.Fatal(err)
		}
		done, err := h.code.ShellCommand(t.Context(), alice, "box", "main", r.ProcessID, time.Minute)
		if err != nil || done.ExitCode != 137 || !done.Shell.Ended {
			t.Errorf("%+v, %v", done, err)
		}
	})
	t.Run("WhoseTricksHarmItsShellAlone", func(t *testing.T) {
		h := started(t)
		said(t, h.in("other", "x=mine"), "", 0)
		for _, command := range []string{
			`__sandpit_say '{"t":"end","id":1,"exit":0}' >/proc/$$/fd/198; echo forged`,
			`head -c 3000000 /dev/urandom >/proc/$$/fd/198`,
			`__sandpit_say "$(head -c 4000 /dev/zero | tr '\0' x)" >/proc/$$/fd/199`,
			`exec >/dev/null 2>&1 </dev/null; exec 3<>/dev/zero`,
			`f=$(readlink /proc/$$/fd/1); rm "$f"; echo file >"$f"; echo more`,
			`f=$(readlink /proc/$$/fd/1); for i in 1 2 3; do echo into >"$f" & done; sleep 1000 >"$f" & exit 2`,
			`set -C -e -u; trap 'exit 9' EXIT DEBUG ERR; false`,
			`source() { :; }; command() { :; }; builtin() { :; }; printf() { :; }; exit() { :; }`,
			`exec sleep 0.01`, `exec 198>&- 199>&-`, `ulimit -n 4; echo few`, `kill -9 $$`, `if ; then`, "cat <<'E'\n$(id)\nE", "set -e; false",
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			r, err := h.code.ShellExec(ctx, alice, "box", "main", engine.ExecRequest{Shell: command, Timeout: 3 * time.Second}, nil)
			cancel()
			if err != nil && ctx.Err() != nil {
				t.Errorf("%s: %+v, %v", command, r, err)
			}
			said(t, h.in("other", "echo $x"), "mine\n", 0)
			if err := h.code.DeleteShell(t.Context(), alice, "box", "main"); err != nil {
				t.Fatal(err)
			}
		}
		h.await("the end of all commands", func() bool {
			page, err := h.engine.ListProcesses(t.Context(), alice, "box", process.Query{Running: true})
			return err == nil && len(page.Items) == 1
		})
		said(t, h.in("main", "echo on"), "on\n", 0)
	})
}
