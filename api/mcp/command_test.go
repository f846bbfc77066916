// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"sandpit.dev/engine"
	"sandpit.dev/sandbox"
)

func TestRunCommand(t *testing.T) {
	t.Parallel()
	h := open(t)
	s := h.alice()
	ok(t, s, "create_sandbox", arguments{"name": "box"})
	in := func(args arguments) arguments {
		args["sandbox"] = "box"
		return args
	}

	t.Run("BeginsWithTheVerdict", func(t *testing.T) {
		got := ok(t, s, "run_command", in(arguments{"command": "echo out; echo err >&2"}))
		if !strings.HasPrefix(got, "exit 0 after ") || !strings.HasSuffix(verdict(got), "· in /workspace · sandbox box") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "--- stdout (4 bytes) ---\nout\n", "--- stderr (4 bytes) ---\nerr")
	})

	t.Run("FailureOfTheCommandIsNoErrorOfTheTool", func(t *testing.T) {
		got := ok(t, s, "run_command", in(arguments{"command": "exit 3"}))
		if !strings.HasPrefix(got, "exit 3 after ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "--- no output ---")
	})

	t.Run("TakesItsTimeout", func(t *testing.T) {
		got := ok(t, s, "run_command", in(arguments{"command": "echo before; sleep 600", "timeout_seconds": 0.3}))
		if !strings.HasPrefix(got, "exit 137 (killed: its timeout passed) after ") {
			t.Errorf("verdict: got %q", verdict(got))
		}
		wantParts(t, got, "before", "next: raise timeout_seconds")
	})

	t.Run("TakesCwdEnvAndStdin", func(t *testing.T) {
		ok(t, s, "run_command", in(arguments{"command": "mkdir -p deep"}))
		got := ok(t, s, "run_command", in(arguments{
			"command": "basename $PWD; echo $GREETING; cat", "cwd": "deep", "env": arguments{"GREETING": "hello"}, "stdin": "from stdin",
		}))
		wantParts(t, got, "deep\nhello\nfrom stdin")
	})

	t.Run("TakesWhatModelsWriteInstead", func(t *testing.T) {
		got := ok(t, s, "run_command", arguments{
			"cmd": "echo $N", "sandbox_id": "box", "timeout": "20", "env": []string{"N=5"}, "workdir": nil, "explanation": "why I do it",
		})
		wantParts(t, got, "\n5", "note: the argument \"explanation\" is not known here and was ignored")
		got = ok(t, s, "run_command", in(arguments{"command": []string{"printf", "%s", "a b"}}))
		wantParts(t, got, "--- stdout (3 bytes) ---\na b")
	})

	t.Run("CutsLongOutputInTheMiddle", func(t *testing.T) {
		got := ok(t, s, "run_command", in(arguments{"command": "seq 1 100000"}))
		if n := utf8.RuneCountInString(got); n > 16_600 {
			t.Errorf("the answer has %d characters", n)
		}
		wantParts(t, got, " · output shortened\n", "note: the output was shortened; all of it is in the file /tmp/sandpit/", "\n1\n2\n3\n", "lines left out …]\n", "\n99999\n100000")
		_, path, _ := strings.Cut(got, "in the file ")
		path, _, _ = strings.Cut(path, " of the sandbox")
		wantParts(t, ok(t, s, "read_file", in(arguments{"path": path, "start_line": 50000, "line_count": 1})), "50000\t50000")
		wantParts(t, ok(t, s, "search_files", in(arguments{"path": path, "pattern": "^77777$"})), path+":77777: 77777")
		before, _, _ := strings.Cut(got, "--- stdout")
		if !strings.Contains(before, "note: ") {
			t.Error("the note stands in or after the output")
		}
	})

	t.Run("CutsWhatIsMoreThanIsKept", func(t *testing.T) {
		got := ok(t, s, "run_command", in(arguments{"command": "seq 1 2000000; echo the end >&2", "max_output_chars": 1000}))
		wantParts(t, got, "\n1\n2\n3\n", "left out …]\n", "\n1999999\n2000000", "--- stderr (8 bytes) ---\nthe end")
	})

	t.Run("WithoutASandboxUsesTheDefaultOne", func(t *testing.T) {
		got := ok(t, s, "run_command", arguments{"command": "echo kept > file"})
		wantParts(t, got, "· sandbox default-alice", "note: the default sandbox default-alice was just created")
		got = ok(t, s, "run_command", arguments{"command": "cat file"})
		wantParts(t, got, "kept")
		if strings.Contains(got, "just created") {
			t.Errorf("it was created again:\n%s", got)
		}
		// Another token has its own.
		got = ok(t, h.session("t-bob", stateless, nil), "run_command", arguments{"command": "ls"})
		wantParts(t, got, "· sandbox default-bob-2", "--- no output ---")
	})
}

// TestCancel shows that whoever cancels a call ends the command, in both eras.
func TestCancel(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			begun := make(chan struct{}, 1)
			h := open(t)
			s := h.session("t-alice", version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(context.Context, *sdk.ProgressNotificationClientRequest) {
					select {
					case begun <- struct{}{}:
					default:
					}
				},
			})
			ok(t, s, "create_sandbox", arguments{"name": "box"})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &sdk.CallToolParams{Name: "run_command", Arguments: arguments{"command": "echo begun; sleep 600", "sandbox": "box"}}
			p.SetProgressToken(1)
			ended := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, p)
				ended <- err
			}()
			<-begun
			cancel()
			if err := <-ended; err == nil {
				t.Error("the cancelled call was answered")
			}
			ev := h.commandDone("box")
			if ev.Cause != sandbox.CauseKilled || ev.Via != "mcp" || ev.Actor != "alice" {
				t.Errorf("the command's event: cause %q, via %q, actor %q; want killed, mcp, alice", ev.Cause, ev.Via, ev.Actor)
			}
		})
	}
}

// commandDone waits for the end of the sandbox's last command; the test's own
// deadline ends a wait for what never comes.
func (h *house) commandDone(ref string) *sandbox.Event {
	h.t.Helper()
	for {
		changed := h.store.Changed()
		evs, _, err := h.engine.Activity(h.t.Context(), callers["t-alice"], ref, engine.ActivityRequest{Types: []sandbox.EventType{sandbox.EventExec}})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(evs) > 0 && evs[0].Done {
			return evs[0]
		}
		select {
		case <-changed:
		case <-h.t.Context().Done():
			h.t.Fatal(h.t.Context().Err())
		}
	}
}

func TestProgressIsToldWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			var mu sync.Mutex
			var heard []*sdk.ProgressNotificationParams
			first := make(chan struct{})
			h := open(t)
			s := h.session("t-alice", version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					if heard = append(heard, r.Params); len(heard) == 1 {
						close(first)
					}
				},
			})
			ok(t, s, "create_sandbox", arguments{"name": "box"})
			p := &sdk.CallToolParams{Name: "run_command", Arguments: arguments{
				"command": "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two", "sandbox": "box",
			}}
			p.SetProgressToken("token-1")
			ended := make(chan *sdk.CallToolResult, 1)
			go func() {
				res, err := s.CallTool(t.Context(), p)
				if err != nil {
					t.Error(err)
				}
				ended <- res
			}()
			<-first
			ok(t, s, "write_file", arguments{"path": "go", "content": "", "sandbox": "box"})
			res := <-ended
			if res == nil {
				return
			}
			wantParts(t, text(t, res), "one\ntwo")
			mu.Lock()
			defer mu.Unlock()
			if got := fmt.Sprint(heard[0].ProgressToken, " ", heard[0].Message); got != "token-1 one" {
				t.Errorf("told %q, want the token and the line %q", got, "one")
			}
		})
	}
}

// lastEvent is the newest of a kind; nil: there is none.
func (h *house) lastEvent(ref string, kind sandbox.EventType) *sandbox.Event {
	h.t.Helper()
	evs, _, err := h.engine.Activity(h.t.Context(), callers["t-alice"], ref, engine.ActivityRequest{Types: []sandbox.EventType{kind}})
	if err != nil {
		h.t.Fatal(err)
	}
	if len(evs) == 0 {
		return nil
	}
	return evs[0]
}
