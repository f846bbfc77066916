// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"strings"
	"testing"
	"time"

	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// started is what an asynchronous run_sandbox gives.
type started struct {
	RunID string `json:"run_id"`
	Next  []string
	Final struct {
		State    string
		Error    string
		Commands []struct{ Status, Cause string }
	}
}

func TestARunThatNobodyWaitsForIsEnded(t *testing.T) {
	t.Parallel()
	for _, version := range []string{handshake, stateless} {
		t.Run(version, func(t *testing.T) {
			h := openWith(t, toolset.GroupRuns)
			s := h.session("t-alice", version, nil)
			start := func(commands ...any) started {
				t.Helper()
				res := call(t, s, "run_sandbox", arguments{"identifier": "chat-1", "commands": commands, "options": arguments{"await_completion": false, "lock_sandbox": true}})
				got := structured[started](t, res)
				end := `to end it: call stop_process with {"process": "` + got.RunID + `"}`
				wantParts(t, text(t, res), `next: call run_sandbox with {"identifier": "chat-1", "run_id": "`+got.RunID+`"}, which waits for its end`, end)
				wantParts(t, strings.Join(got.Next, "\n"), end)
				return got
			}
			state := func(id string) *sandbox.Run {
				t.Helper()
				r, err := h.runs.Get(t.Context(), callers["t-alice"], id)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}

			t.Run("WhileACommandRuns", func(t *testing.T) {
				one := start("echo begun; sleep 600", "echo never")
				until(t, "the command runs", func() bool {
					_, events, err := h.runs.Events(t.Context(), callers["t-alice"], one.RunID, 0, 0)
					for _, ev := range events {
						if ev.Type == sandbox.RunCommandStdout {
							return true
						}
					}
					return err != nil
				})
				queued := start("echo never")
				res := call(t, s, "stop_process", arguments{"process": queued.RunID})
				wantParts(t, text(t, res), "run canceled: 0 of 1 commands ran", "it had not begun, and does not any more", "[0] queued, and never begun")

				process := state(one.RunID).Commands[0].ProcessID
				res = call(t, s, "stop_process", arguments{"run_id": one.RunID, "sandbox": "chat-1"})
				wantParts(t, text(t, res), "run canceled: 1 of 2 commands ran", "what ran of it was killed, and no other command was begun",
					"[0] failed: exit 137 (killed)", "[1] queued, and never begun", "cause: it was canceled", "--- [0] stdout (6 bytes) ---\nbegun")
				if got := structured[started](t, res); got.Final.State != "canceled" || got.Final.Commands[0].Cause != "killed" || got.Final.Commands[1].Status != "queued" || got.Next != nil {
					t.Errorf("got %+v", got)
				}
				if r := state(one.RunID); r.State != sandbox.RunCanceled {
					t.Errorf("the record says %s", r.State)
				}
				if p, err := h.engine.Process(t.Context(), callers["t-alice"], "chat-1", process); err != nil || p.Result == nil {
					t.Errorf("its process: %+v, %v", p, err)
				}
				again := ok(t, s, "stop_process", arguments{"process": one.RunID})
				wantParts(t, again, "run canceled", "it had ended already; nothing was changed")
			})

			t.Run("WhenItHasEndedNothingIsChanged", func(t *testing.T) {
				one := start("echo one")
				if _, err := h.runs.Await(t.Context(), callers["t-alice"], one.RunID, time.Minute); err != nil {
					t.Fatal(err)
				}
				wantParts(t, ok(t, s, "stop_process", arguments{"process": one.RunID}), "run completed: 1 of 1 commands ran", "it had ended already; nothing was changed")
				if r := state(one.RunID); r.State != sandbox.RunCompleted {
					t.Errorf("the record says %s", r.State)
				}
			})

			t.Run("WhatIsWrongIsSaid", func(t *testing.T) {
				one := start("sleep 600")
				h.wrong(t, "stop_process", arguments{"process": one.RunID, "signal": "INT"}, "argument signal is for processes")
				h.wrong(t, "stop_process", arguments{"process": one.RunID, "sandbox": "other"}, "error (not_found)", `of another sandbox than "other"`, "leave sandbox out")
				h.wrong(t, "stop_process", arguments{"process": "00000000-0000-4000-8000-000000000000"}, "error (not_found)", "there is no run")
				h.wrong(t, "read_process", arguments{"process": one.RunID, "sandbox": "chat-1"}, "is a run and no process", "call run_sandbox with", "stop_process")
				stranger := call(t, h.session("t-stranger", version, nil), "stop_process", arguments{"process": one.RunID})
				wantParts(t, text(t, stranger), "error (not_found)", "there is no run")
				reader := call(t, h.session("t-reader", version, nil), "stop_process", arguments{"process": one.RunID})
				wantParts(t, text(t, reader), "error (denied)")
				if r := state(one.RunID); r.State.Ended() || r.Canceled {
					t.Errorf("one of these ended it: %+v", r)
				}
				ok(t, s, "stop_process", arguments{"process": one.RunID})
			})
		})
	}
}

// TestTheWayToEndARunIsOneThatThereIs has no tool for it in the answer where the caller
// has none.
func TestTheWayToEndARunIsOneThatThereIs(t *testing.T) {
	t.Parallel()
	run := arguments{"identifier": "chat-1", "commands": []any{"sleep 600"}, "options": arguments{"await_completion": false}}
	t.Run("WithoutTheGroupOfProcesses", func(t *testing.T) {
		h := openWith(t, toolset.GroupRuns, "-"+toolset.GroupProcess)
		res := call(t, h.alice(), "run_sandbox", run)
		id := structured[started](t, res).RunID
		wantParts(t, text(t, res), "to end it: POST /v1/runs/"+id+"/cancel")
	})
	t.Run("InAnotherProfile", func(t *testing.T) {
		h := openRuns(t, nil)
		res := call(t, h.sandboxd(handshake), "run_sandbox", run)
		got := structured[started](t, res)
		wantParts(t, text(t, res), "next: GET /mcp/runs/"+got.RunID, "to end it: POST /v1/runs/"+got.RunID+"/cancel")
		if strings.Contains(text(t, res), "stop_process") || got.Next != nil {
			t.Errorf("it speaks of tools that are not there: %s", text(t, res))
		}
	})
	t.Run("OfASandboxWhoseNameNoArgumentTakes", func(t *testing.T) {
		h := openWith(t, toolset.GroupRuns)
		ok(t, h.alice(), "create_sandbox", arguments{"name": "a name"})
		run, err := h.runs.Start(t.Context(), callers["t-alice"], runs.Request{Sandbox: "a name", Commands: []runs.Command{{Shell: "sleep 600"}}})
		if err != nil {
			t.Fatal(err)
		}
		var of string
		until(t, "the run has begun", func() bool {
			r, err := h.runs.Get(t.Context(), callers["t-alice"], run.ID)
			of = string(r.Sandbox)
			return err != nil || r.State == sandbox.RunRunning
		})
		h.wrong(t, "read_process", arguments{"process": run.ID, "sandbox": "a name"}, `call run_sandbox with {"identifier": "`+of+`"`)
		wantParts(t, ok(t, h.alice(), "run_sandbox", arguments{"identifier": of, "run_id": run.ID, "options": arguments{"await_timeout_ms": 1}}), "it goes on")
		ok(t, h.alice(), "stop_process", arguments{"process": run.ID})
	})
}
