// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
)

func TestASandboxesUserIsCalledAsWasAskedFor(t *testing.T) {
	t.Parallel()
	h := open(t)
	plain := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", object{})
	if diff := cmp.Diff(v1.Account{Name: "sandbox", Home: "/home/sandbox", Workdir: "/workspace"}, plain.Account); diff != "" || plain.User != "sandbox" {
		t.Errorf("the default one: user %q (-want +got)\n%s", plain.User, diff)
	}
	body := object{"key": "box", "account": object{"name": "dev", "workdir": "/srv/app"}}
	s := want[v1.Sandbox](h, 201, "POST", "/v1/sandboxes", body)
	if diff := cmp.Diff(v1.Account{Name: "dev", Home: "/home/dev", Workdir: "/srv/app"}, s.Account); diff != "" || s.User != "dev" || s.Workspace != "/srv/app" {
		t.Errorf("user %q, workspace %q (-want +got)\n%s", s.User, s.Workspace, diff)
	}
	r := want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/box/exec", object{"command": "echo $USER $LOGNAME; echo here > made"})
	if r.Stdout != "dev dev\n" {
		t.Errorf("a command says %q", r.Stdout)
	}
	want[v1.FileInfo](h, 201, "POST", "/v1/sandboxes/box/files?path=written", object{"content": "x"})
	for _, name := range []string{"made", "written"} {
		if r := want[v1.ExecResult](h, 200, "POST", "/v1/sandboxes/box/exec", object{"command": "test -e " + name}); r.ExitCode == nil || *r.ExitCode != 0 {
			t.Errorf("%s is not where it works: %+v", name, r)
		}
	}
	if again := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes", body); again.Differs != nil {
		t.Errorf("the same again: %v", again.Differs)
	}
	if other := want[v1.Sandbox](h, 200, "POST", "/v1/sandboxes", object{"key": "box", "account": object{"name": "other"}}); !cmp.Equal(other.Differs, []string{"account"}) {
		t.Errorf("another one: %v", other.Differs)
	}
}
