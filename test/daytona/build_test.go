// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/test/servertest"
)

// built creates a sandbox of a Dockerfile with one step.
func (d *door) built(name, step string) object {
	d.t.Helper()
	return d.get("POST", "/sandbox", object{"name": name, "buildInfo": object{"dockerfileContent": "FROM python\nRUN " + step}})
}

// told returns what an event socket says of a sandbox until it has a state: the names and the states of the events.
func told(ctx context.Context, t *testing.T, conn *websocket.Conn, id, last string) (all []string) {
	t.Helper()
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			t.Fatalf("the socket ended with %v after %q", err, all)
		}
		var name string
		var body struct {
			ID, State string
			Sandbox   struct{ ID, State string }
		}
		text, ok := strings.CutPrefix(string(b), "42")
		if !ok || json.Unmarshal([]byte(text), &[]any{&name, &body}) != nil {
			continue
		}
		if name == "sandbox.state.updated" {
			body.ID, body.State = body.Sandbox.ID, body.Sandbox.State
		}
		if body.ID != id {
			if strings.HasPrefix(name, "snapshot.") {
				t.Errorf("a snapshot is told of, which nobody made: %s", b)
			}
			continue
		}
		if all = append(all, name+" "+body.State); body.State == last {
			return all
		}
	}
}

func TestABuildForASandboxIsToldByTheEventSocket(t *testing.T) {
	servertest.Need(t)
	d := enter(t, imagetest.Own(t))
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	conn, status, b := d.dial(ctx, d.token, "/socket.io/?EIO=4&transport=websocket")
	if conn == nil {
		t.Fatalf("the socket: %d %s", status, b)
	}
	if err := conn.Write(ctx, websocket.MessageText, []byte(`40{"token":"`+d.token+`"}`)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0{", "40{"} {
		if _, b, err := conn.Read(ctx); err != nil || !strings.HasPrefix(string(b), want) {
			t.Fatalf("the socket says %s, %v", b, err)
		}
	}
	for _, c := range []struct{ name, step, last string }{{"good", "true", "started"}, {"bad", "exit 7", "build_failed"}} {
		box := d.built(c.name, c.step)
		d.has("the answer", box, object{"HTTP": 200, "state": "pending_build", "desiredState": "started"})
		all := told(ctx, t, conn, fmt.Sprint(box["id"]), c.last)
		if want := []string{"sandbox.created building_snapshot", "sandbox.state.updated " + c.last}; !slices.Equal(all, want) {
			t.Errorf("told: %q, want %q", all, want)
		}
	}
	d.has("the reason", d.get("GET", "/sandbox/bad", nil), object{"state": "build_failed", "errorReason": "line 2 of the Dockerfile: RUN exit 7: it ended with exit code 7"})
}

// Sandboxes that ask for the same share its build, which goes on for as long as one of them waits. A server that is killed meanwhile
// says of them that they have failed.
func TestAKillDuringABuildForSandboxesIsNoLie(t *testing.T) {
	servertest.Need(t)
	d := enter(t, imagetest.Own(t))
	const step = "echo in the step; sleep 1000"
	for _, name := range []string{"a", "b"} {
		d.has("the answer", d.built(name, step), object{"HTTP": 200, "state": "pending_build"})
	}
	logs := strings.TrimPrefix(fmt.Sprint(d.get("GET", "/sandbox/b/build-logs-url", nil)["url"]), d.url)
	d.awaitLine(logs+"?follow=true", "in the step")
	count := func() int { return strings.Count(d.run("template", "ls"), "building") }
	if n := count(); n != 1 {
		t.Errorf("%d builds go on", n)
	}
	d.has("deleted", d.get("DELETE", "/sandbox/a", nil), object{"HTTP": 200, "state": "destroyed"})
	d.has("it goes on for the other", d.get("GET", "/sandbox/b", nil), object{"state": "building_snapshot"})
	if n := count(); n != 1 {
		t.Errorf("%d builds go on for the other", n)
	}
	d.restart()
	box := d.get("GET", "/sandbox/b", nil)
	d.has("after the kill", box, object{"HTTP": 200, "state": "build_failed", "recoverable": false})
	if !strings.Contains(fmt.Sprint(box["errorReason"]), "the server ended") {
		t.Errorf("after the kill the reason is %v", box["errorReason"])
	}
	d.has("its name is taken", d.built("b", "true"), object{"HTTP": 409})
	d.has("until it is deleted", d.get("DELETE", "/sandbox/b", nil), object{"HTTP": 200})
	d.has("again", d.built("b", step), object{"HTTP": 200, "state": "pending_build"})
	logs = strings.TrimPrefix(fmt.Sprint(d.get("GET", "/sandbox/b/build-logs-url", nil)["url"]), d.url)
	d.awaitLine(logs+"?follow=true", "in the step")
	d.has("the last that waits is deleted", d.get("DELETE", "/sandbox/b", nil), object{"HTTP": 200})
	if n := count(); n != 0 {
		t.Errorf("%d builds go on for nobody", n)
	}
	status, b := d.ask(d.run("token", "create", "--name", "mallet", "--project", "elsewhere", "--scope", "admin"), "GET", logs, "", nil)
	d.refused("another project's log", status, b, 404)
}
