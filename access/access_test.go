// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"slices"
	"strings"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/fault"
)

func TestRequire(t *testing.T) {
	all := access.Scopes()
	for _, c := range []struct {
		name string
		held []access.Scope
		may  []access.Scope
	}{
		{"NothingMayNothing", nil, nil},
		{"ReadMayRead", []access.Scope{access.SandboxesRead}, []access.Scope{access.SandboxesRead}},
		{"WriteIsNotRead", []access.Scope{access.SandboxesWrite}, []access.Scope{access.SandboxesWrite}},
		{"AdminMayAllOfItsProject", []access.Scope{access.Admin}, all},
		{"ServerAdminMayAll", []access.Scope{access.ServerAdmin}, append(access.Scopes(), access.ServerAdmin)},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller := access.Caller{Actor: "ci", Scopes: c.held}
			for _, s := range append(access.Scopes(), access.ServerAdmin) {
				err := caller.Require(s)
				if slices.Contains(c.may, s) {
					if err != nil {
						t.Errorf("Require(%s): %v", s, err)
					}
					continue
				}
				names := string(s)
				if s == access.ServerAdmin {
					names = "whole server"
				}
				if !fault.Is(err, fault.Denied) || !strings.Contains(err.Error(), names) {
					t.Errorf("Require(%s): got %v, want Denied that names the scope", s, err)
				}
				for _, held := range c.held {
					if s == access.ServerAdmin {
						continue // which no other scope comes near
					}
					if !strings.Contains(err.Error(), string(held)) {
						t.Errorf("Require(%s): %q does not name the scope held", s, err)
					}
				}
			}
		})
	}
}

func TestCheckScopes(t *testing.T) {
	got, err := access.CheckScopes("scopes", []access.Scope{access.Admin, access.SandboxesRead, access.Admin})
	if want := []access.Scope{access.SandboxesRead, access.Admin}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err = access.CheckScopes("scopes", nil); err != nil || !slices.Equal(got, access.DefaultScopes()) {
		t.Errorf("got %v, %v, want the default", got, err)
	}
	for _, bad := range []access.Scope{access.ServerAdmin, "", "Admin", "sandboxes", "*", access.Scope(strings.Repeat("x", 1<<20))} {
		if _, err := access.CheckScopes("scopes", []access.Scope{bad}); !fault.Is(err, fault.Invalid) || len(err.Error()) > 300 {
			t.Errorf("got %v, want a short Invalid", err)
		}
	}
}
