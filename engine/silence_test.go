// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sandpit.dev/agent"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/files"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// silence has the agent of a sandbox say nothing until the test wakes it.
func (h *house) silence(id sandbox.ID) (wake func()) {
	h.t.Helper()
	wake, err := h.host.Silence(id)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(wake)
	return wake
}

// silentCalls are the verbs that need a sandbox's agent. process is a command of its.
func silentCalls(h *house, process string) map[string]func(context.Context) error {
	e := h.engine
	const ref = "box"
	big := bytes.Repeat([]byte("x"), 4<<20) // more than a connection takes unread
	return map[string]func(context.Context) error{
		"Exec": func(ctx context.Context) error {
			_, err := e.Exec(ctx, alice, ref, engine.ExecRequest{Shell: "touch ran"}, nil)
			return err
		},
		"ExecWithInput": func(ctx context.Context) error {
			_, err := e.Exec(ctx, alice, ref, engine.ExecRequest{Shell: "cat", Stdin: big}, nil)
			return err
		},
		"StartProcess": func(ctx context.Context) error {
			_, err := e.StartProcess(ctx, alice, ref, engine.StartRequest{Shell: "touch ran"})
			return err
		},
		"Terminal": func(ctx context.Context) error {
			_, err := e.Terminal(ctx, alice, ref, engine.TerminalRequest{Shell: "touch ran"})
			return err
		},
		"Process":     func(ctx context.Context) error { _, err := e.Process(ctx, alice, ref, process); return err },
		"Processes":   func(ctx context.Context) error { _, err := e.Processes(ctx, alice, ref); return err },
		"KillProcess": func(ctx context.Context) error { return e.KillProcess(ctx, alice, ref, process) },
		"KillAll":     func(ctx context.Context) error { return e.KillAll(ctx, alice, ref) },
		"SignalProcess": func(ctx context.Context) error {
			return e.SignalProcess(ctx, alice, ref, process, syscall.SIGTERM, true)
		},
		"ResizeProcess": func(ctx context.Context) error { return e.ResizeProcess(ctx, alice, ref, process, 80, 24) },
		"WriteInput": func(ctx context.Context) error {
			_, err := e.WriteInput(ctx, alice, ref, process, engine.InputRequest{Data: []byte("in"), Offset: -1})
			return err
		},
		"WaitProcess": func(ctx context.Context) error {
			_, err := e.WaitProcess(ctx, alice, ref, process, time.Minute)
			return err
		},
		"Follow": func(ctx context.Context) error {
			f, err := e.Follow(ctx, alice, ref, process, engine.FollowRequest{})
			if err == nil {
				f.Close()
			}
			return err
		},
		"ReadFile": func(ctx context.Context) error {
			_, r, err := files.New(e, 0).ReadFile(ctx, alice, ref, "file", sandbox.ReadFileOptions{})
			if err == nil {
				_ = r.Close()
			}
			return err
		},
		"WriteFile": func(ctx context.Context) error {
			_, _, err := files.New(e, 0).WriteFile(ctx, alice, ref, "ran", strings.NewReader("x"), sandbox.WriteFileOptions{})
			return err
		},
		"WriteALargeFile": func(ctx context.Context) error {
			_, _, err := files.New(e, 0).WriteFile(ctx, alice, ref, "ran", bytes.NewReader(big), sandbox.WriteFileOptions{})
			return err
		},
		"StatFile": func(ctx context.Context) error {
			_, err := files.New(e, 0).StatFile(ctx, alice, ref, "file", "")
			return err
		},
		"ListFiles": func(ctx context.Context) error {
			_, _, err := files.New(e, 0).ListFiles(ctx, alice, ref, ".", sandbox.ListFilesOptions{})
			return err
		},
		"SearchFiles": func(ctx context.Context) error {
			_, _, _, err := files.New(e, 0).SearchFiles(ctx, alice, ref, ".", sandbox.SearchFilesOptions{Glob: "*"})
			return err
		},
		"ChangeFile": func(ctx context.Context) error {
			_, err := files.New(e, 0).ChangeFile(ctx, alice, ref, "file", sandbox.ChangeFileOptions{Attributes: map[string]string{"k": "v"}})
			return err
		},
		"ReplaceInFiles": func(ctx context.Context) error {
			_, err := files.New(e, 0).ReplaceInFiles(ctx, alice, ref, []string{"file"}, sandbox.ReplaceFilesOptions{Pattern: "x"})
			return err
		},
		"MakeDir": func(ctx context.Context) error {
			return files.New(e, 0).MakeDir(ctx, alice, ref, "ran", sandbox.MakeDirOptions{})
		},
		"MoveFile": func(ctx context.Context) error {
			return files.New(e, 0).MoveFile(ctx, alice, ref, "file", "ran", sandbox.MoveFileOptions{})
		},
		"RemoveFile": func(ctx context.Context) error {
			return files.New(e, 0).RemoveFile(ctx, alice, ref, "file", sandbox.RemoveFileOptions{})
		},
		"Ports":    func(ctx context.Context) error { _, _, err := h.ports.Ports(ctx, alice, ref); return err },
		"DialPort": func(ctx context.Context) error { _, err := h.ports.DialPort(ctx, alice, ref, 80); return err },
		"RunCode": func(ctx context.Context) error {
			_, err := h.code.RunCode(ctx, alice, ref, code.Request{Language: "python", Code: "1", Stateless: true}, nil)
			return err
		},
		"CreateShell": func(ctx context.Context) error {
			_, err := h.code.CreateShell(ctx, alice, ref, code.ShellRequest{Name: "new"})
			return err
		},
	}
}

// Nobody waits for ever for an agent that says nothing, everybody is told what to do, and
// the sandbox goes on once it answers.
func TestASilentAgentHangsNobody(t *testing.T) {
	for _, since := range []struct {
		what    string
		restart bool
	}{{"WhileTheServerRuns", false}, {"SinceTheServerBegan", true}} {
		t.Run(since.what, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				h := open(t, dir, noRounds)
				s := h.create(engine.CreateRequest{Key: "box", IdleTimeout: ptr(time.Duration(0))})
				h.exec("box", "echo text >file")
				// One that has ended: a process that runs would hold up the bubble's time.
				process := h.exec("box", "exit 7").ProcessID
				wake := h.silence(s.ID)
				if since.restart {
					h.restart(noRounds)
				}
				began := time.Now()
				got := make(map[string]error)
				var mu sync.Mutex
				var all sync.WaitGroup
				for name, call := range silentCalls(h, process) {
					all.Go(func() {
						err := call(context.Background())
						mu.Lock()
						defer mu.Unlock()
						got[name] = err
					})
				}
				all.Wait()
				if took := time.Since(began); took > 2*agent.SilenceBound {
					t.Errorf("all calls at a time took %v", took)
				}
				for name, err := range got {
					e := fault.As(err)
					if err == nil || e.Code != fault.Unavailable || !errors.Is(err, agent.ErrSilent) || e.Retry == 0 || !strings.Contains(e.Remedy, "stop the sandbox") {
						t.Errorf("%s: got %v, remedy %q, retry %v", name, err, e.Remedy, e.Retry)
					}
				}
				if now := h.get(s.ID); now.State != sandbox.Running {
					t.Fatalf("it is %s (%s: %s)", now.State, now.StopCause, now.StopDetail)
				}
				seen, err := h.engine.Get(t.Context(), alice, "box")
				if err != nil || seen.UnresponsiveSince.IsZero() {
					t.Errorf("its record does not tell: %+v, %v", seen, err)
				}
				page, err := h.engine.List(t.Context(), alice, engine.SandboxesRequest{})
				if err != nil || len(page.Items) != 1 || page.Items[0].UnresponsiveSince.IsZero() {
					t.Errorf("a list does not tell: %+v, %v", page, err)
				}

				wake()
				time.Sleep(time.Minute) // it is asked again
				synctest.Wait()
				if seen, err := h.engine.Get(t.Context(), alice, "box"); err != nil || !seen.UnresponsiveSince.IsZero() {
					t.Errorf("awake: %+v, %v", seen, err)
				}
				h.exec("box", "test -e file && test ! -e new")
				if rec, err := h.engine.Process(t.Context(), alice, "box", process); err != nil || rec.Result == nil || rec.Result.ExitCode != 7 {
					t.Errorf("its process: %+v, %v", rec, err)
				}
				if _, err := h.engine.Stop(t.Context(), alice, "box"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A server does not wait for agents to be ready, however many say nothing.
func TestReadinessWaitsForNoAgent(t *testing.T) {
	for _, n := range []int{1, 4} { // the race detector's runtime ends at some thousands of pings in a bubble
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			h := open(t, dir, noRounds)
			var ids []sandbox.ID
			for range n {
				ids = append(ids, h.create(engine.CreateRequest{IdleTimeout: ptr(time.Minute)}).ID)
			}
			talks := h.create(engine.CreateRequest{Key: "talks", IdleTimeout: ptr(time.Minute)})
			var wakes []func()
			for _, id := range ids {
				wakes = append(wakes, h.silence(id))
			}
			h.end()
			began := time.Now()
			h.serve(noRounds)
			if took := time.Since(began); took != 0 {
				t.Errorf("with %d silent agents it is ready after %v", n, took)
			}
			h.exec("talks", "true")
			if took := time.Since(began); took > time.Second {
				t.Errorf("beside %d silent agents a command took %v", n, took)
			}
			time.Sleep(90 * time.Second) // none is idle while nobody knows what runs in it
			for _, id := range ids {
				h.wantState(id, sandbox.Running, "later")
			}
			for _, wake := range wakes {
				wake()
			}
			time.Sleep(30 * time.Second)
			for _, id := range ids {
				if s, err := h.engine.Get(t.Context(), alice, string(id)); err != nil || !s.UnresponsiveSince.IsZero() {
					t.Fatalf("awake: %+v, %v", s, err)
				}
				h.exec(string(id), "true")
			}
			h.wantState(talks.ID, sandbox.Stopped, "idle")
		})
	}
}

// What ends a sandbox needs no agent.
func TestASilentAgentKeepsNothingFromEnding(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for name, one := range map[string]struct {
			end   func(*engine.Engine) error
			after sandbox.State
			most  time.Duration
		}{
			"Stop":   {func(e *engine.Engine) error { _, err := e.Stop(context.Background(), alice, "box"); return err }, sandbox.Stopped, 5 * time.Second},
			"Delete": {func(e *engine.Engine) error { return e.Delete(context.Background(), alice, "box") }, sandbox.Deleted, 0},
			"Fresh":  {func(e *engine.Engine) error { _, err := e.Reset(context.Background(), alice, "box"); return err }, sandbox.Running, 5 * time.Second},
		} {
			what := name + "/WhileTheServerRuns"
			if restart {
				what = name + "/SinceTheServerBegan"
				if one.most > 0 {
					one.most += 5 * time.Second // it is asked what became of its commands
				}
			}
			t.Run(what, func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) {
					h := open(t, dir, noRounds)
					s := h.create(engine.CreateRequest{Key: "box"})
					h.silence(s.ID)
					if restart {
						h.restart(noRounds)
					}
					began := time.Now()
					if err := one.end(h.engine); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > one.most {
						t.Errorf("it took %v", took)
					}
					h.wantState(s.ID, one.after, "afterwards")
					h.recorded()
					for _, ev := range h.events(s.ID) {
						if !ev.Done {
							t.Errorf("an event is left open: %+v", ev)
						}
					}
				})
			})
		}
	}
}

// One whose time has come goes, and one whose process 1 ends is seen to.
func TestASilentSandboxStillEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
		gone := h.create(engine.CreateRequest{TTL: 10 * time.Minute})
		dead := h.create(engine.CreateRequest{})
		h.silence(gone.ID)
		h.silence(dead.ID)
		killed := runtime.Exit{Cause: sandbox.CauseKilled, Detail: "by the test"}
		h.restart(noRounds)
		time.Sleep(time.Minute)
		if err := h.host.Kill(dead.ID, killed); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		h.wantState(dead.ID, sandbox.Stopped, "killed")
		if s := h.get(dead.ID); s.StopCause != killed.Cause {
			t.Errorf("cause %s: %s", s.StopCause, s.StopDetail)
		}
		h.wantState(gone.ID, sandbox.Running, "before its time")
		time.Sleep(10 * time.Minute)
		h.wantState(gone.ID, sandbox.Deleted, "after its time")
	})
}

// A sandbox that is paused is not silent: calls that got there before wait for the resume.
func TestAPausedSandboxIsNotSilent(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house, _ *hostClock) {
		s := h.create(engine.CreateRequest{Key: "box", AutoResume: ptr(false), AutoStart: ptr(false)})
		// A body that goes on after the pause has the call wait there.
		r, w := io.Pipe()
		done := make(chan error, 1)
		go func() {
			_, _, err := h.files.WriteFile(context.Background(), alice, "box", "file", r, sandbox.WriteFileOptions{})
			done <- err
		}()
		_, _ = w.Write([]byte("begin"))
		synctest.Wait()
		h.pause("box")
		go func() {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 4<<20))
			_ = w.Close()
		}()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the upload ended while it was paused: %v", err)
		default:
		}
		if got, err := h.engine.Get(t.Context(), alice, string(s.ID)); err != nil || !got.UnresponsiveSince.IsZero() {
			t.Errorf("paused: %+v, %v", got, err)
		}
		h.resume("box")
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The round finds what nobody calls: only that of sandboxes in use is looked at.
func TestTheRoundFindsASilentAgentInUse(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := open(t, dir)
		used := h.create(engine.CreateRequest{Key: "used"})
		idle := h.create(engine.CreateRequest{Key: "idle", IdleTimeout: ptr(time.Duration(0))})
		r, w := io.Pipe() // a body that does not come
		var upload sync.WaitGroup
		upload.Go(func() {
			_, _, _ = h.files.WriteFile(context.Background(), alice, "used", "file", r, sandbox.WriteFileOptions{})
		})
		defer upload.Wait()
		defer w.Close()
		synctest.Wait()
		wake := h.silence(used.ID)
		h.silence(idle.ID)
		time.Sleep(3 * time.Minute)
		page, err := h.engine.List(t.Context(), alice, engine.SandboxesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Items {
			if s.UnresponsiveSince.IsZero() == (s.ID == used.ID) {
				t.Errorf("%s: unresponsive since %v", s.Key, s.UnresponsiveSince)
			}
		}
		wake()
		time.Sleep(time.Minute)
		if s, err := h.engine.Get(t.Context(), alice, "used"); err != nil || !s.UnresponsiveSince.IsZero() {
			t.Errorf("awake: %+v, %v", s, err)
		}
	})
}
